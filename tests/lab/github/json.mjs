// GitHub's packages import JSON without saying so, which Node wants to be told.
import fs from 'node:fs';
import { fileURLToPath } from 'node:url';

export async function load(url, context, next) {
  if (!url.endsWith('.json')) return next(url, context);
  return { format: 'json', shortCircuit: true, source: fs.readFileSync(fileURLToPath(url)) };
}
