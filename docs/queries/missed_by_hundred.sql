-- How the miss ratio went on: of each hundred of a source's tuples, the results that were not met.
SELECT output, source, epoch, seq // 100 * 100 AS from_seq,
       count(*) AS results,
       count(*) FILTER (outcome = 'met') AS met,
       round(1 - met / results, 3) AS not_met
FROM 'tables/results/*.parquet'
GROUP BY ALL
ORDER BY ALL;
