-- Of each output: its missed share, and the three places on the way that spent most of the slowest results' time.
SELECT o.output, o.met, o.late, o.shed, o.lost, round(o.miss_ratio, 4) AS miss_ratio,
       h.hop, h.kind, h.tail_mean_ns / 1e6 AS tail_mean_ms
FROM 'tables/outputs/*.parquet' o
JOIN 'tables/hops/*.parquet' h USING (output)
QUALIFY row_number() OVER (PARTITION BY o.output ORDER BY h.tail_mean_ns DESC, h.hop, h.kind) <= 3
ORDER BY o.output, h.tail_mean_ns DESC, h.hop, h.kind;
