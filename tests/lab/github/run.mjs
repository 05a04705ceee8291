// Runs a workflow of GitHub Actions on this machine: run.mjs PACKAGES WORKFLOW EVENT. The workflow is read and judged by GitHub's own packages, and its
// expressions are evaluated by them; steps run as a runner's do, each job in a workspace of its own.
//
// EVENT is a file of JSON: `github`, `vars`, `secrets`, `environments` (vars and secrets of each), `repository` (what is checked out), `store` (of this run), `kept`
// (of all runs), `env` (of each step). Prints as JSON what became of each job.
import { spawnSync } from 'node:child_process';
import fs from 'node:fs';
import { createRequire, register } from 'node:module';
import path from 'node:path';
import { pathToFileURL } from 'node:url';
import { act } from './actions.mjs';

register('./json.mjs', import.meta.url);
const [packages, workflow, eventFile] = process.argv.slice(2);
const there = createRequire(path.join(packages, 'package.json'));
const from = name => import(pathToFileURL(path.join(packages, 'node_modules', name)));
const { parseWorkflow, convertWorkflowTemplate, NoOperationTraceWriter } = await from('@actions/workflow-parser/dist/index.js');
const { validate } = await from('@actions/languageservice/dist/index.js');
const { Lexer, Parser, Evaluator, data } = await from('@actions/expressions/dist/index.js');
const { TextDocument } = there('vscode-languageserver-textdocument');
const content = fs.readFileSync(workflow, 'utf8');
const event = JSON.parse(fs.readFileSync(eventFile, 'utf8'));

const wrong = (await validate(TextDocument.create('file:///.github/workflows/w.yml', 'yaml', 0, content))).map(d => `line ${d.range.start.line + 1}: ${d.message}`);
const parsed = parseWorkflow({ name: 'w.yml', content }, new NoOperationTraceWriter());
wrong.push(...parsed.context.errors.getErrors().map(e => e.message));
if (wrong.length > 0) {
  console.error(wrong.join('\n'));
  process.exit(1);
}
const template = await convertWorkflowTemplate(parsed.context, parsed.value);
// What the template leaves out: inputs of actions, permissions.
const raw = there('yaml').parse(content, { merge: true });

/** The value of an expression, as text or as what it is. */
function value(expression, contexts, status) {
  const is = (name, holds) => ({ name, minArgs: 0, maxArgs: 0, call: () => new data.BooleanData(holds) });
  const hash = { name: 'hashFiles', minArgs: 1, maxArgs: 255, call: (...all) => new data.StringData(all.some(p => fs.existsSync(path.join(status.workspace, p.coerceString()))) ? 'hash' : '') };
  const functions = [is('success', status.ok), is('failure', !status.ok), is('always', true), is('cancelled', false), hash];
  const tokens = new Lexer(expression).lex().tokens;
  const parsed = new Parser(tokens, Object.keys(contexts), functions).parse();
  const given = new data.Dictionary(...Object.entries(contexts).map(([key, of]) => ({ key, value: JSON.parse(JSON.stringify(of), data.reviver) })));
  return new Evaluator(parsed, given, new Map(functions.map(f => [f.name.toLowerCase(), f]))).evaluate();
}
const holds = (expression, contexts, status) => value(expression, contexts, status).coerceString() !== 'false' && value(expression, contexts, status).coerceString() !== '';
const filled = (text, contexts, status) => String(text).replace(/\$\{\{(.*?)\}\}/gs, (_, e) => value(e.trim(), contexts, status).coerceString());
const all = (of, contexts, status) => Object.fromEntries(Object.entries(of || {}).map(([name, text]) => [name, filled(text, contexts, status)]));

async function job(of, needs) {
  const written = raw.jobs[of.id.value];
  const environment = event.environments?.[written.environment] || {};
  const contexts = { github: event.github, vars: { ...event.vars, ...environment.vars }, secrets: { ...event.secrets, ...environment.secrets }, needs };
  const status = { ok: Object.values(needs).every(n => n.result === 'success'), workspace: '/' };
  if (!holds(of.if.expression, contexts, status)) return { result: 'skipped', outputs: {} };
  const folder = fs.mkdtempSync(path.join(event.store, `${of.id.value}-`));
  const at = { event, store: event.store, kept: event.kept, workspace: path.join(folder, 'work'), temp: path.join(folder, 'temp'), permissions: Object.entries(written.permissions || {}).map(p => p.join(': ')) };
  for (const made of [at.workspace, at.temp]) fs.mkdirSync(made);
  const files = Object.fromEntries(['ENV', 'PATH', 'OUTPUT', 'STEP_SUMMARY'].map(n => [`GITHUB_${n}`, path.join(folder, n)]));
  const read = name => (fs.existsSync(files[name]) ? fs.readFileSync(files[name], 'utf8') : '');
  const pairs = text => Object.fromEntries(text.split('\n').filter(l => l.includes('=')).map(l => [l.slice(0, l.indexOf('=')), l.slice(l.indexOf('=') + 1)]));
  const inside = { ok: true, workspace: at.workspace };
  const steps = {};
  let log = '';
  for (const [number, step] of of.steps.entries()) {
    const own = written.steps[number];
    const env = { ...all({ ...raw.env, ...written.env }, contexts, inside), ...pairs(read('GITHUB_ENV')) };
    const now = { ...contexts, env, steps, runner: { temp: at.temp } };
    if (!holds(step.if.expression, now, inside)) continue;
    log += `## ${own.name || own.uses}\n`;
    if (own.uses) {
      try {
        await act(own.uses, at, all(own.with, now, inside));
      } catch (error) {
        log += `${error.message}\n`;
        inside.ok = false;
      }
      continue;
    }
    fs.rmSync(files.GITHUB_OUTPUT, { force: true });
    const script = path.join(folder, 'script.sh');
    fs.writeFileSync(script, filled(own.run, now, inside));
    const paths = [...read('GITHUB_PATH').split('\n').filter(l => l), event.env.PATH].join(':');
    const around = { ...event.env, ...env, ...all(own.env, now, inside), ...files, RUNNER_TEMP: at.temp, PATH: paths };
    const ended = spawnSync('bash', ['--noprofile', '--norc', '-eo', 'pipefail', script], { cwd: at.workspace, env: around, encoding: 'utf8' });
    log += ended.stdout + ended.stderr;
    steps[step.id] = { outputs: pairs(read('GITHUB_OUTPUT')), outcome: ended.status === 0 ? 'success' : 'failure' };
    inside.ok &&= ended.status === 0;
  }
  const outputs = all(written.outputs, { ...contexts, steps }, inside);
  return { result: inside.ok ? 'success' : 'failure', outputs, log, summary: read('GITHUB_STEP_SUMMARY'), role: at.role || null };
}

const done = {};
for (const of of template.jobs) {
  // They stand in an order in which nothing is needed before it is there.
  done[of.id.value] = await job(of, Object.fromEntries((of.needs || []).map(n => [n.value, done[n.value]])));
}
console.log(JSON.stringify(done));
