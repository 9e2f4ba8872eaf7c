# The code of `plan --emit torch` applied to a stub of torch (emit_stub.py), beside what the program
# itself says of the same plan: units and their parameters from the history, options from JSON; the
# lists of prefetching, dtypes, placements and checkpointed blocks counted out here once more. At last
# the recorded calls become --units, and are the same program.
#
# Arguments: the program, a database, a seed and how many random cases. Prints "good NAME" or "bad NAME"
# a line.

import fnmatch
import json
import random
import re
import subprocess
import sys

import emit_stub

PROGRAM, DB = sys.argv[1], sys.argv[2]
MODEL_OPTIONS = ("layers", "lora")


def run(*words):
    done = subprocess.run([PROGRAM, *words], capture_output=True, text=True)
    return done.returncode, done.stdout, done.stderr


def query(sql, *values):
    return json.loads(run("query", sql, *values, "--json", "--db", DB)[1])


def matches(patterns, name):
    """A pattern of the program: no brackets, and '*' is any letters."""
    return any(fnmatch.fnmatchcase(name, pattern.replace("[", "[[]"))
               for pattern in patterns.split(",") if pattern)


class Case:
    def __init__(self, model, arguments, kept=""):
        self.model, self.arguments = model, arguments
        self.kept = kept  # patterns of what computes in FP32

    def emit(self):
        code, self.text, self.warnings = run(
            "plan", self.model, *self.arguments, "--emit", "torch", "--db", DB)
        assert code == 0, self.warnings
        self.hash = re.search(r"^# program ([0-9a-f]{16})$", self.text, re.M)[1]
        row = query("select run, options from v_run where program_hash = ? order by run desc limit 1",
                    self.hash)[0]
        self.options = json.loads(row["options"])
        self.units = query("select name, reshard, members from v_unit where run = ? order by unit",
                           str(row["run"]))
        for unit in self.units:
            unit["members"] = json.loads(unit["members"])
        words = [word for key in MODEL_OPTIONS if key in self.options
                 for word in ("--" + key, str(self.options[key]))]
        self.shown = json.loads(run("model", "show", self.model, *words, "--json")[1])

    def apply(self):
        recorder = emit_stub.Recorder()
        emit_stub.install(recorder)
        self.space = {}
        exec(compile(self.text, "emitted", "exec"), self.space)
        self.root = emit_stub.model_of(self.shown)
        self.named = dict(self.root.named_parameters())
        self.paths = {}
        for path in {name.rsplit(".", end)[0] for name in [*self.named, "lm_head.weight"]
                     for end in range(1, name.count(".") + 1)}:
            try:
                self.paths[self.root.get_submodule(path)] = path
            except KeyError:
                pass
        self.mesh = self.space["make_mesh"]()
        assert self.space["apply"](self.root, self.mesh) is self.root
        self.states = recorder.states

    # -- what it has to be

    def check_units(self):
        """In any order of calls; groups of a second mesh are one call."""
        want, got = [], []
        for unit in self.units:
            if unit["name"].endswith(" on mesh 2") and want and set(
                    self.state_of(unit).managed) >= {self.named[n] for n in want[-1][0]}:
                continue
            want.append((sorted(p.name for p in self.state_of(unit).managed),
                         self.expected_reshard(unit)))
        for state in self.states:
            if state.managed:
                got.append((sorted(p.name for p in state.managed),
                            state.arguments["reshard_after_forward"]))
        return sorted(map(repr, want)) == sorted(map(repr, got)) and all(
            [p.name for p in self.state_of(unit).managed if p.name in unit["members"]]
            == unit["members"] for unit in self.units)

    def state_of(self, unit):
        return next(s for s in self.states if self.named[unit["members"][0]] in s.managed)

    def expected_reshard(self, unit):
        reshard = self.options["reshard"]
        if not unit["reshard"]:
            return False
        ranks = self.options["gpus"] // self.options.get("replicas", 1)
        return int(reshard) if reshard.isdigit() and int(reshard) < ranks else True

    def check_order(self):
        """Each call takes all that is left of its modules; the root is the last one."""
        return self.states[-1].modules == [self.root] and sum(
            len(s.managed) for s in self.states) == sum(len(u["members"]) for u in self.units)

    def check_prefetch(self):
        """The next units in forward and those before in backward, the root never among them."""
        order = []
        for unit in self.units:
            if (state := self.state_of(unit)) not in order:
                order.append(state)
        root = self.states[-1]
        good = True
        for at, state in enumerate(order):
            ahead = order[at + 1:at + 1 + self.options["prefetch"]]
            before = [s for s in (order if state is root else order[:at]) if s is not root]
            behind = before[::-1][:self.options["prefetch_backward"]]
            good = good and state.forward == [s.number for s in ahead]
            good = good and state.backward == [s.number for s in behind]
        return good and (root in order or not (root.forward or root.backward))

    def check_dtypes(self):
        if any(p.dtype != self.options["storage_dtype"] for p in self.named.values()):
            return False
        for state in self.states:
            policy = state.arguments["mp_policy"]
            override = policy.param_dtype_override_fn or policy.param_dtype_fn
            is_pr = self.options["behavior"] == "torch-pr196626"
            if (policy.param_dtype_fn if not is_pr else policy.param_dtype_override_fn):
                return False
            for parameter in state.managed:
                dtype = override and override(parameter) or policy.param_dtype
                if dtype != ("fp32" if matches(self.kept, parameter.name)
                             else self.options["param_dtype"]):
                    return False
            casts = self.options.get("cast_inputs", "yes") == "yes"
            if policy.param_dtype == self.options["param_dtype"]:
                if policy.cast_forward_inputs != casts:
                    return False
            if (policy.reduce_dtype, policy.output_dtype) != (
                    self.options["reduce_dtype"], self.options.get("output_dtype")):
                return False
        return True

    def check_placement(self):
        dims = [entry.rsplit("=", 1) for entry in self.options.get("shard_dim", "").split(",") if entry]
        for parameter in self.states[0].managed + self.states[-1].managed:
            dim = next((int(d) for p, d in dims[::-1] if matches(p, parameter.name)), 0)
            second = matches(self.options.get("second_mesh", ""), parameter.name)
            place = self.states[0].arguments.get("shard_placement_fn", lambda _: None)(parameter)
            if "second_mesh" in self.options:
                if (place.mesh_info.mesh is self.mesh) == second or place.placement.dim != dim:
                    return False
            elif (place.dim if place else 0) != dim:
                return False
        return True

    def check_frozen(self):
        return "lora" in self.options or all(
            p.requires_grad != matches(self.options.get("freeze", ""), n)
            for n, p in self.named.items())

    def check_ignored(self):
        managed = {p.name for s in self.states for p in s.managed}
        return managed == {n for n in self.named if not matches(self.options.get("ignore", ""), n)}

    def check_blocks(self):
        """By the number of a block, which is the first one in its path."""
        ac, n = self.options["ac"], self.options.get("ac_layers", 1 << 30)
        every = int(ac[6:]) if ac.startswith("every:") else 1
        got = set()
        for module, path in self.paths.items():
            parent = self.root.get_submodule(path.rpartition(".")[0]) if "." in path else self.root
            if isinstance(parent.inside().children.get(path.rpartition(".")[2]), emit_stub.Wrapper):
                got.add(path)
        blocks = {m[0] for path in self.paths.values()
                  if (m := re.match(r"(?:[a-z_]+\.)*(\d+)", path, re.I))}
        want = {b for b in blocks if ac != "none" and int(b.rpartition(".")[2]) < n
                and (int(b.rpartition(".")[2]) + 1) % every == 0}
        return got == want

    def check_switches(self):
        state, options = self.states[-1], self.options
        want = {key: value for key, value in {
            "reduce_scatter_max_input_buffers": options.get("reduce_inputs"),
            "separate_reduce_scatter_group": options.get("separate_reduce_comm") == "yes" or None,
            "reduce_scatter_unused_params": options.get("unused") == "zero" or None,
            "force_sum_reduction_for_comms": options.get("force_sum") == "yes" or None,
            "gradient_divide_factor": options.get("divide_factor") and float(options["divide_factor"]),
        }.items() if value is not None}
        if state.switches != want:
            return False
        if "before_microbatch" not in self.space:
            return options["accum"] == 1 or "last" not in options.values()
        for index in range(options["accum"]):
            self.space["before_microbatch"](self.root, index)
            for key, method in {"sync": "requires_gradient_sync", "all_reduce": "requires_all_reduce",
                                "last_backward": "is_last_backward",
                                "reshard_backward": "reshard_after_backward"}.items():
                want = index + 1 == options["accum"] if options.get(key) == "last" else None
                if state.switches.get(method) != want:
                    return False
        return True

    def check_mesh(self):
        gpus, replicas = self.options["gpus"], self.options.get("replicas", 1)
        return self.mesh.shape == ((replicas, gpus // replicas) if replicas > 1 else (gpus,))

    def check_optimizer(self):
        """All that is trained is in one group, or in several."""
        name, groups, _ = self.space["make_optimizer"](self.root, lr=1)
        got = [p for g in groups for p in (g["params"] if isinstance(g, dict) else [g])]
        return name.lower() in self.options["optimizer"].replace("adamw-", "adamw ") and (
            set(got) == {p for p in self.named.values() if p.requires_grad})

    def check_warnings(self):
        """As many comments as warnings, with the same words."""
        comments = re.sub(r"\n#   ", " ", self.text)
        return all("\n# - " + line.split(": ", 1)[1] in comments
                   for line in self.warnings.splitlines())

    def check_program(self):
        """Names of units come from lists of modules, so that those that are kept are found by place."""
        calls = [[self.paths[m.inside()] for m in s.modules] for s in self.states[:-1]]
        options = dict(self.options, units=json.dumps(calls) if calls else "whole")
        options.pop("no_reshard", None)
        if options["reshard"] in ("auto", "no", "all-but-last"):
            options["reshard"] = "yes"
        if not all(unit["reshard"] for unit in self.units):
            again = query("select name from v_unit where run = ? order by unit",
                          self.sim(dict(options, reshard="no")))
            kept = [u["name"] for u, old in zip(again, self.units) if not old["reshard"]]
            options["no_reshard"] = ",".join(name.replace(",", "?") for name in kept)
        return query("select program_hash from v_run where run = ?",
                     self.sim(options))[0]["program_hash"] == self.hash

    def sim(self, options):
        words = [w for key, value in options.items()
                 for w in ("--" + key.replace("_", "-"), str(value))]
        code, text, why = run("sim", self.model, *words, "--json", "--db", DB)
        assert code == 0, why
        return str(json.loads(text)["run_id"])

    def judge(self):
        try:
            self.emit()
            self.apply()
            bad = [name[6:] for name in dir(self) if name.startswith("check_")
                   and not getattr(self, name)()]
        except Exception as fault:  # of whatever kind: it is this case that is bad
            bad = [repr(fault).replace("\n", " ")]
        print("bad" if bad else "good", self.model, *self.arguments, *(["(" + ", ".join(bad) + ")"] if bad else []))


KDA = "*A_log,*dt_bias"
named = [
    Case("llama3-8b", ["--layers", "4"]),
    Case("llama3-8b", ["--layers", "6", "--search", "grouping,reshard", "--ac", "full"]),
    Case("gpt2", ["--layers", "3", "--batch", "4"]),
    Case("mpt-125m", ["--layers", "2", "--reshard", "4", "--units", "block*2"]),
    Case("kda-tiny", ["--behavior", "torch-2.15", "--units", "torchtitan", "--ac", "op"], KDA),
    Case("kda-tiny", ["--arrange", "by-dtype", "--units", "block", "--prefetch", "2",
                      "--prefetch-backward", "1"], KDA),
    Case("kda-flat", ["--layers", "2", "--behavior", "torch-pr196626", "--units", "whole"], KDA),
    Case("kda-tiny", ["--behavior", "unshard", "--arrange", "precast", "--units", "block*2"], KDA),
    Case("llama-tiny", ["--units", "[\"model\",\"model.layers.*\",\"model.layers.*.mlp\"]",
                        "--reshard", "no", "--freeze", "*embed*", "--cast-inputs", "no",
                        "--no-unshard-backward", "model.layers.0"]),
    Case("llama-tiny", ["--units", "block", "--ignore", "*input_layernorm*", "--output-dtype", "bf16",
                        "--shard-dim", "*o_proj*=1", "--gpus", "2", "--storage-dtype", "bf16"]),
    Case("llama-tiny", ["--units", "torchtitan", "--behavior", "torch-2.15", "--second-mesh",
                        "*mlp*", "--prefetch", "1", "--prefetch-backward", "2"]),
    Case("llama-tiny", ["--units", "block", "--gpus", "8", "--replicas", "2", "--accum", "3", "--sync",
                        "last", "--all-reduce", "last", "--last-backward", "last",
                        "--reshard-backward", "last", "--reduce-inputs", "2", "--force-sum", "yes",
                        "--divide-factor", "4", "--unused", "zero", "--pack-stream", "rs"]),
    Case("llama-tiny", ["--units", "block", "--separate-reduce-comm", "yes", "--host-sync",
                        "model.layers.1", "--clip", "1", "--log-loss", "yes", "--optimizer", "sgd"]),
    Case("llama-tiny", ["--lora", "r=4,alpha=8", "--units", "block", "--behavior", "torch-2.15"]),
]


def some_units(random, paths, layers):
    """Blocks in a row to units of any size, ends wherever they go."""
    blocks, units = list(range(layers)), []
    while blocks:
        n = random.randint(1, 3)
        units.append([paths["block"] % i for i in blocks[:n]])
        blocks = blocks[n:]
    for end in paths["ends"]:
        place = random.choice(["own", "root", "last"])
        if place == "own":
            units.append(list(end))
        elif place == "last":
            units[-1] += end
    return json.dumps(units)


FAMILIES = {
    "llama2-7b": dict(block="model.layers.%d", ends=[["model.embed_tokens"], ["model.norm", "lm_head"]]),
    "gpt2": dict(block="transformer.h.%d",
                 ends=[["transformer.wte", "transformer.wpe", "lm_head"], ["transformer.ln_f"]]),
    "kda-1.75b": dict(block="layers.%d", ends=[]),
}


def random_case(random):
    model = random.choice(list(FAMILIES))
    layers = random.randint(2, 8)
    arguments = ["--layers", str(layers), "--gpus", "8", "--batch", "1",
                 "--units", some_units(random, FAMILIES[model], layers)]
    arguments += ["--reshard", random.choice(["auto", "yes", "no", "all-but-last", "2", "4"])]
    arguments += ["--prefetch", str(random.randint(0, 3))]
    arguments += ["--prefetch-backward", str(random.randint(0, 3))]
    arguments += ["--ac", random.choice(["none", "full", "op", "every:2"])]
    arguments += random.choice([[], ["--replicas", "2"], ["--ac-layers", "2"]])
    arguments += ["--behavior", random.choice(["torch-2.15", "torch-pr196626", "unshard"])]
    case = Case(model, arguments, KDA if model == "kda-1.75b" else "")
    if random.random() < 0.4:
        case.emit()
        case.arguments += ["--no-reshard", random.choice(case.units)["name"].replace(",", "?")]
    return case


seed, n = int(sys.argv[3]), int(sys.argv[4])
for case in named:
    case.judge()
random = random.Random(seed)
for _ in range(n):
    random_case(random).judge()
