// SPDX-License-Identifier: MIT
// duckdb.mjs FILE QUERY: the rows of the query, in which "events" is the Parquet file, as tab separated JSON values.
import { createRequire } from "node:module";
const require = createRequire(new URL("../../web/package.json", import.meta.url));
const { DuckDBInstance } = require("@duckdb/node-api");

const [path, query] = process.argv.slice(2);
const connection = await (await DuckDBInstance.create()).connect();
await connection.run(`create view events as select * from read_parquet('${path.replaceAll("'", "''")}')`);
const rows = (await connection.runAndReadAll(query)).getRows();
const text = (value) => (typeof value === "bigint" ? String(value) : JSON.stringify(value));
process.stdout.write(rows.map((row) => row.map(text).join("\t") + "\n").join(""));
