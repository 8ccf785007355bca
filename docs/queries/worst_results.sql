-- The ten results that took longest, with the share of their deadline that they used. In a run's directory:
-- duckdb -c ".read worst_results.sql"
SELECT output, source, epoch, seq, ordinal, outcome,
       latency_hi_ns / 1e6 AS latency_ms,
       round(latency_hi_ns / deadline_ns, 2) AS of_deadline
FROM 'tables/results/*.parquet'
WHERE latency_hi_ns IS NOT NULL
ORDER BY latency_hi_ns DESC, output, source, epoch, seq, ordinal
LIMIT 10;
