-- Of each output that asks for the age of its data: how old they were, and the three places where the oldest were longest.
SELECT a.output, a.limit_ns / 1e6 AS limit_ms, a.bound_ns / 1e6 AS bound_ms, a.p99_ns / 1e6 AS p99_ms, a.above, a.counted,
       h.hop, h.kind, h.mean_ns / 1e6 AS mean_ms
FROM 'tables/ages/*.parquet' a
LEFT JOIN 'tables/age_hops/*.parquet' h USING (output)
WHERE a.kind = 'age'
QUALIFY row_number() OVER (PARTITION BY a.output ORDER BY h.mean_ns DESC, h.hop, h.kind) <= 3
ORDER BY a.output, h.mean_ns DESC, h.hop, h.kind;
