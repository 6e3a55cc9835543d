CREATE MATERIALIZED VIEW worst AS
SELECT store, count(*) AS warmings, max(high) AS celsius
FROM all_warmings
GROUP BY store
