-- Step 7 of the schema: what retries of the allocator take of a step, and the memory that a step was
-- simulated without since real runs need it; metrics that older runs lack.

-- v_run: one row a run.
--   run              its number, from 1 on
--   kind             sim, or plan: one row of a comparison
--   created          when it was stored, UTC
--   tool_version     of the program that stored it
--   environment      system, machine and compiler, as JSON; nothing that names the host
--   command          what was typed
--   model, cluster   their names
--   options          the plan's options in force, as JSON
--   world            ranks; gpus_per_node of them share a node
--   parameters       of the model
--   units, tasks     how many there are
--   program_hash     equal for equal programs
--   placement_hash   equal for equal addresses
--   plan_group       shared by the rows of one comparison, else NULL
--   step_ns ...      the metrics, in the unit of their name; NULL where the run has none
--   retry_ns         what retries take of a mean step; they are those of the step's times
--   withheld_bytes   times are those of a GPU with so much less memory than what the peaks are of
DROP VIEW v_run;
CREATE VIEW v_run AS
SELECT run.id AS run, run.kind AS kind,
    strftime('%Y-%m-%d %H:%M:%S', run.created_ns / 1000000000, 'unixepoch') AS created,
    run.tool_version AS tool_version, run.environment AS environment, run.command AS command,
    model.name AS model, cluster.name AS cluster, plan.json AS options,
    run.world AS world, run.gpus_per_node AS gpus_per_node, run.parameters AS parameters,
    (SELECT count(*) FROM unit WHERE unit.run_id = run.id) AS units, run.n_task AS tasks,
    run.program_hash AS program_hash, run.placement_hash AS placement_hash,
    run.plan_group AS plan_group,
    (SELECT value FROM metric WHERE run_id = run.id AND name = 'step_low_ns') AS step_low_ns,
    (SELECT value FROM metric WHERE run_id = run.id AND name = 'step_ns') AS step_ns,
    (SELECT value FROM metric WHERE run_id = run.id AND name = 'step_high_ns') AS step_high_ns,
    (SELECT value FROM metric WHERE run_id = run.id AND name = 'compute_ns') AS compute_ns,
    (SELECT value FROM metric WHERE run_id = run.id AND name = 'comm_ns') AS comm_ns,
    (SELECT value FROM metric WHERE run_id = run.id AND name = 'exposed_comm_ns')
        AS exposed_comm_ns,
    (SELECT value FROM metric WHERE run_id = run.id AND name = 'contention_ns') AS contention_ns,
    (SELECT value FROM metric WHERE run_id = run.id AND name = 'retry_ns') AS retry_ns,
    (SELECT value FROM metric WHERE run_id = run.id AND name = 'tokens_per_s_per_gpu_milli')
        AS tokens_per_s_per_gpu_milli,
    (SELECT value FROM metric WHERE run_id = run.id AND name = 'mfu_micro') AS mfu_micro,
    (SELECT value FROM metric WHERE run_id = run.id AND name = 'hfu_micro') AS hfu_micro,
    (SELECT value FROM metric WHERE run_id = run.id AND name = 'peak_allocated_bytes')
        AS peak_allocated_bytes,
    (SELECT value FROM metric WHERE run_id = run.id AND name = 'peak_active_bytes')
        AS peak_active_bytes,
    (SELECT value FROM metric WHERE run_id = run.id AND name = 'peak_reserved_bytes')
        AS peak_reserved_bytes,
    (SELECT value FROM metric WHERE run_id = run.id AND name = 'first_peak_allocated_bytes')
        AS first_peak_allocated_bytes,
    (SELECT value FROM metric WHERE run_id = run.id AND name = 'first_peak_reserved_bytes')
        AS first_peak_reserved_bytes,
    (SELECT value FROM metric WHERE run_id = run.id AND name = 'init_peak_bytes')
        AS init_peak_bytes,
    (SELECT value FROM metric WHERE run_id = run.id AND name = 'outside_bytes') AS outside_bytes,
    (SELECT value FROM metric WHERE run_id = run.id AND name = 'memory_limit_bytes')
        AS memory_limit_bytes,
    (SELECT value FROM metric WHERE run_id = run.id AND name = 'fits') AS fits,
    (SELECT value FROM metric WHERE run_id = run.id AND name = 'retries') AS retries,
    (SELECT value FROM metric WHERE run_id = run.id AND name = 'withheld_bytes') AS withheld_bytes
FROM run
JOIN document AS model ON model.id = run.model_id
JOIN document AS plan ON plan.id = run.plan_id
JOIN document AS cluster ON cluster.id = run.cluster_id;
