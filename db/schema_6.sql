-- Step 6 of the schema: candidates, the plans that a search has judged.
--
-- They are there where a search was asked to keep them, and are no runs: of each there are two numbers,
-- and a third of the few that were placed. Those that the answer shows are runs of the same plan_group
-- besides.

-- reserved_bytes is NULL where the plan was not placed.
CREATE TABLE candidate (
    plan_group     INTEGER NOT NULL CHECK (plan_group > 0),
    search         INTEGER NOT NULL CHECK (search > 0),
    rank           INTEGER NOT NULL CHECK (rank > 0),
    units          TEXT NOT NULL,
    options        TEXT NOT NULL,
    step_ns        INTEGER NOT NULL CHECK (step_ns >= 0),
    peak_bytes     INTEGER NOT NULL CHECK (peak_bytes >= 0),
    reserved_bytes INTEGER CHECK (reserved_bytes >= 0),
    fits           INTEGER NOT NULL CHECK (fits IN (0, 1)),
    on_front       INTEGER NOT NULL CHECK (on_front IN (0, 1)),
    PRIMARY KEY (plan_group, search, rank)
) STRICT, WITHOUT ROWID;

-- v_candidate: one row a plan that a search has judged.
--   plan_group       shared with the runs of the same answer, as in v_run
--   search           from 1 on: one for each combination of options
--   rank             in its search: those that fit before others, then the fastest first
--   units            in words: 16x2 is 16 units of two blocks each, k: it keeps its parameters
--   options          in which it differs from other plans of the answer, as one would type them
--   step_ns          time of a step
--   peak_bytes       requested at the highest moment
--   reserved_bytes   by the allocator, or NULL where that was not looked at
--   fits             1: into the limit, with what is reserved where that is known, else as requested
--   on_front         1: no other one of its search that fits is as fast and requests as little
CREATE VIEW v_candidate AS
SELECT plan_group, search, rank, units, options, step_ns, peak_bytes, reserved_bytes, fits, on_front
FROM candidate;
