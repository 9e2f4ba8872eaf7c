-- Step 5 of the schema: runs of one rank that stands for all of a plan, of kind emulated.
--
-- Such a run has what one of kind real has, but that its collectives were stand-ins, which took as
-- long as a price said and moved the bytes of one rank: it is no measurement of collectives, its
-- numbers mean nothing, and its losses are NULL. The column kind of v_run is sim, plan, real or
-- emulated.

-- v_real: one row a run of kind real or emulated.
--   run
--   device           what it ran on
--   transport        what carried bytes between ranks: shm, tcp, mpi, or none; emulated
--   ranks, steps     how many there are, steps that were only begun included
--   warmup           so many of the steps are not measured
--   seed             of parameters and inputs
--   failed           1: it did not do all of its steps
--   error            why, or NULL
--   emulated         so many ranks were emulated by the one that ran; NULL: none
DROP VIEW v_real;
CREATE VIEW v_real AS
SELECT real.run_id AS run, real.device AS device, real.transport AS transport,
    (SELECT count(*) FROM real_rank WHERE real_rank.run_id = real.run_id) AS ranks,
    (SELECT count(*) FROM real_step WHERE real_step.run_id = real.run_id) AS steps,
    real.warmup AS warmup, real.seed AS seed, real.error IS NOT NULL AS failed,
    real.error AS error, iif(run.kind = 'emulated', run.world, NULL) AS emulated
FROM real_run AS real
JOIN run ON run.id = real.run_id;
