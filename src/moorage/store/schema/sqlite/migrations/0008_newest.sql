-- PostgreSQL alone keeps old versions of a row, and receipts: nothing changes here.
SELECT 1 WHERE FALSE;
