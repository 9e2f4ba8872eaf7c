# As much of torch as the code of `plan --emit torch` calls: modules, parameters, fully_shard and what
# it leaves behind, checkpoint_wrapper. Nothing is computed; calls are recorded, and what PyTorch 2.15
# would refuse of them raises.

import collections
import itertools
import sys
import types
from dataclasses import dataclass


class Dtype(str):
    pass


class Tensor:
    def __init__(self, dtype):
        self.dtype = dtype

    def to(self, dtype):
        return Tensor(dtype)


class Parameter:
    def __init__(self, name, shape):
        self.name, self.shape = name, shape
        self.data = Tensor(Dtype("float64"))
        self.requires_grad = True

    dtype = property(lambda self: self.data.dtype)

    def numel(self):
        n = 1
        for size in self.shape:
            n *= size
        return n

    def requires_grad_(self, requires_grad):
        self.requires_grad = requires_grad


class Module:
    """A tree; the class of a module that is a unit, or one of its modules, is FSDPModule as well."""

    def __init__(self):
        self.children, self.parameters_here = {}, {}
        self.state = None

    def get_submodule(self, path):
        module = self
        for name in path.split("."):
            module = module.inside().children[name]
        return module

    def set_submodule(self, path, module):
        parent, _, name = path.rpartition(".")
        parent = self.get_submodule(parent) if parent else self
        assert name in parent.inside().children
        parent.inside().children[name] = module

    def inside(self):
        return self

    def is_container(self):
        children = self.inside().children
        return bool(children) and all(name.isdigit() for name in children)

    def walk(self):
        """Modules of the subtree, each after its children."""
        for child in self.inside().children.values():
            yield from child.walk()
        yield self.inside()

    def named_parameters(self):
        seen = set()
        for module in self.walk():
            for parameter in module.parameters_here.values():
                if parameter not in seen:
                    seen.add(parameter)
                    yield parameter.name, parameter

    def parameters(self):
        return (parameter for _, parameter in self.named_parameters())

    def __getattr__(self, name):
        if not name.startswith("set_"):
            raise AttributeError(name)
        return getattr(self.state, name)  # an AttributeError where it is no unit


class Wrapper(Module):
    def __init__(self, module, **arguments):
        super().__init__()
        self.module, self.arguments = module, arguments

    def inside(self):
        return self.module.inside()


class State:
    """What one call of fully_shard was, and what was set of it afterwards."""

    def __init__(self, modules, managed, arguments):
        self.modules, self.managed, self.arguments = modules, managed, arguments
        self.forward, self.backward, self.switches = [], [], {}

    def set_modules_to_forward_prefetch(self, modules):
        self.forward = [module.state.number for module in modules]

    def set_modules_to_backward_prefetch(self, modules):
        self.backward = [module.state.number for module in modules]

    def __getattr__(self, name):
        known = (
            "reduce_scatter_max_input_buffers separate_reduce_scatter_group requires_all_reduce "
            "reduce_scatter_unused_params force_sum_reduction_for_comms gradient_divide_factor "
            "unshard_in_backward requires_gradient_sync is_last_backward reshard_after_backward"
        ).split()
        if not name.startswith("set_") or name[4:] not in known:
            raise AttributeError(name)
        return lambda value=True: self.switches.__setitem__(name[4:], value)


class Recorder:
    """The units that were made, in the order of the calls."""

    def __init__(self):
        self.states = []

    def fully_shard(self, module, **arguments):
        modules = module if isinstance(module, list) else [module]
        assert len(set(map(id, modules))) == len(modules) > 0
        ignored = arguments.get("ignored_params", set())
        taken = {p for state in self.states for p in state.managed}
        managed = []
        for one in modules:
            assert one.state is None and not one.is_container(), "a container has no forward"
            for inner in one.walk():
                for parameter in inner.parameters_here.values():
                    if parameter not in taken and parameter not in ignored:
                        taken.add(parameter)
                        managed.append(parameter)
        state = State(modules, managed, arguments)
        state.number = len(self.states)
        self.states.append(state)
        for one in modules:
            one.state = state
        return module


@dataclass(frozen=True)
class MixedPrecisionPolicy:
    param_dtype: object = None
    reduce_dtype: object = None
    output_dtype: object = None
    cast_forward_inputs: bool = True
    param_dtype_override_fn: object = None
    param_dtype_fn: object = None  # of the pull request alone


Mesh = collections.namedtuple("Mesh", "device shape names device_type", defaults=[None, "cuda"])
Shard = collections.namedtuple("Shard", "dim")
ShardPlacementResult = collections.namedtuple("ShardPlacementResult", "placement mesh_info")
FSDPMeshInfo = collections.namedtuple("FSDPMeshInfo", "mesh shard_mesh_dim")


class DeviceMesh:
    @staticmethod
    def from_group(group, device_type):
        return Mesh(device_type, group)


class Anything:
    """torch.ops, of which only names are asked for."""

    def __getattr__(self, name):
        return Anything()


def install(recorder):
    """Make `import torch` and all that is in it find this."""
    tree = {
        "torch": dict(
            bfloat16=Dtype("bf16"), float16=Dtype("fp16"), float32=Dtype("fp32"), ops=Anything(),
            optim=types.SimpleNamespace(AdamW=lambda p, **a: ("AdamW", list(p), a),
                                        SGD=lambda p, **a: ("SGD", list(p), a)),
        ),
        "torch.distributed": dict(new_group=itertools.count().__next__),
        "torch.distributed.fsdp": dict(MixedPrecisionPolicy=MixedPrecisionPolicy,
                                       fully_shard=recorder.fully_shard),
        "torch.distributed.fsdp._fully_shard": {},
        "torch.distributed.fsdp._fully_shard._fsdp_common": dict(
            FSDPMeshInfo=FSDPMeshInfo, ShardPlacementResult=ShardPlacementResult),
        "torch.distributed.tensor": dict(Shard=Shard),
        "torch.distributed.device_mesh": dict(
            DeviceMesh=DeviceMesh,
            init_device_mesh=lambda device, shape, mesh_dim_names: Mesh(device, shape,
                                                                        mesh_dim_names)),
        "torch.distributed.algorithms": {},
        "torch.distributed.algorithms._checkpoint": {},
        "torch.distributed.algorithms._checkpoint.checkpoint_wrapper": dict(
            checkpoint_wrapper=Wrapper),
        "torch.utils": {},
        "torch.utils.checkpoint": dict(
            CheckpointPolicy=Anything(), create_selective_checkpoint_contexts=lambda policy: policy),
    }
    for name, members in tree.items():
        module = sys.modules[name] = types.ModuleType(name)
        vars(module).update(members)
        parent, _, last = name.rpartition(".")
        if parent:
            setattr(sys.modules[parent], last, module)


def model_of(shown):
    """The modules of `unshard model show --json`; a head that is tied is there and has no name."""
    root = Module()
    for tensor in shown["tensors"]:
        *path, last = tensor["name"].split(".")
        module = root
        for name in path:
            module = module.children.setdefault(name, Module())
        module.parameters_here[last] = Parameter(tensor["name"], tensor["shape"])
    if shown["tied"]:
        weight = next(root.parameters())
        root.children.setdefault("lm_head", Module()).parameters_here["weight"] = weight
    return root
