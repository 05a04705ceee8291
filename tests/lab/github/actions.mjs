// What the actions of a workflow do, as far as files on one machine can. Each is given `at` (the job: workspace, temp, event, store) and its inputs.
import { execFileSync } from 'node:child_process';
import fs from 'node:fs';
import path from 'node:path';

const inputs = {
  'actions/checkout': ['persist-credentials'],
  'actions/upload-artifact': ['name', 'path', 'retention-days', 'include-hidden-files', 'if-no-files-found'],
  'actions/download-artifact': ['name', 'path'],
  'actions/cache/restore': ['path', 'key', 'restore-keys'],
  'actions/cache/save': ['path', 'key'],
  'actions/github-script': ['script'],
  'aws-actions/configure-aws-credentials': ['role-to-assume', 'aws-region', 'role-duration-seconds'],
  'github/codeql-action/upload-sarif': ['sarif_file', 'category'],
};

const all = {
  'actions/checkout'(at) {
    execFileSync('git', ['clone', '--quiet', at.event.repository, at.workspace]);
  },
  'actions/upload-artifact'(at, given) {
    const found = files(at, given.path, given['include-hidden-files'] === 'true');
    if (found.length === 0) {
      if ((given['if-no-files-found'] || 'warn') === 'error') throw new Error('no files were found');
      return;
    }
    // From the folder that all are in, or from the one that was named.
    const roots = lines(given.path).map(one => path.resolve(at.workspace, one));
    const root = roots.length === 1 && fs.statSync(roots[0]).isDirectory() ? roots[0] : common(found.map(file => path.dirname(file)));
    const store = path.join(at.store, 'artifacts', given.name);
    if (fs.existsSync(store)) throw new Error(`there is an artifact ${given.name}`);
    for (const file of found) copy(file, path.join(store, path.relative(root, file)));
  },
  'actions/download-artifact'(at, given) {
    const store = path.join(at.store, 'artifacts', given.name);
    if (!fs.existsSync(store)) throw new Error(`there is no artifact ${given.name}`);
    fs.cpSync(store, path.resolve(at.workspace, given.path), { recursive: true });
  },
  'actions/cache/restore'(at, given) {
    const caches = path.join(at.kept, 'caches');
    const keys = fs.existsSync(caches) ? fs.readdirSync(caches).sort((a, b) => age(caches, b) - age(caches, a)) : [];
    const wanted = [given.key, ...lines(given['restore-keys'] || '')];
    const hit = wanted.map(one => keys.find(key => key.startsWith(one))).find(key => key);
    if (hit) copy(path.join(caches, hit), path.resolve(at.workspace, given.path));
  },
  'actions/cache/save'(at, given) {
    const cache = path.join(at.kept, 'caches', given.key);
    // What is there under a key stays as it is.
    if (!fs.existsSync(cache)) copy(path.resolve(at.workspace, given.path), cache);
  },
  async 'actions/github-script'(at, given) {
    const file = path.join(at.kept, 'comments.json');
    const comments = fs.existsSync(file) ? JSON.parse(fs.readFileSync(file, 'utf8')) : [];
    const issues = {
      listComments: 'comments',
      createComment: async ({ issue_number, body }) => comments.push({ id: comments.length + 1, issue_number, body, user: { type: 'Bot' } }),
      updateComment: async ({ comment_id, body }) => { comments.find(c => c.id === comment_id).body = body; },
    };
    const github = { paginate: async () => comments, rest: { issues } };
    const context = { serverUrl: 'https://github.example.com', repo: { owner: 'o', repo: 'r' }, runId: 7, issue: { number: 5 } };
    const run = Object.getPrototypeOf(async () => {}).constructor;
    const { createRequire } = await import('node:module');
    process.env.RUNNER_TEMP = at.temp;
    await new run('github', 'context', 'require', given.script)(github, context, createRequire(import.meta.url));
    if (!at.permissions.includes('pull-requests: write')) throw new Error('Resource not accessible by integration');
    fs.writeFileSync(file, JSON.stringify(comments));
  },
  'aws-actions/configure-aws-credentials'(at, given) {
    if (!at.permissions.includes('id-token: write')) throw new Error('there is no token to exchange');
    at.role = given['role-to-assume'];
  },
  'github/codeql-action/upload-sarif'(at, given) {
    if (!at.permissions.includes('security-events: write')) throw new Error('Resource not accessible by integration');
    copy(path.resolve(at.workspace, given.sarif_file), path.join(at.store, 'sarif', given.category));
  },
};

/** Runs the action of this name. Throws what it says. */
export async function act(uses, at, given) {
  const name = uses.split('@')[0];
  if (!all[name]) throw new Error(`nobody knows here what ${name} does`);
  const unknown = Object.keys(given).find(input => !inputs[name].includes(input));
  if (unknown) throw new Error(`${name} takes no ${unknown}`);
  await all[name](at, given);
}

const lines = text => text.split('\n').map(line => line.trim()).filter(line => line);
const age = (folder, file) => fs.statSync(path.join(folder, file)).mtimeMs;

function copy(from, to) {
  fs.mkdirSync(path.dirname(to), { recursive: true });
  fs.copyFileSync(from, to);
}

function files(at, paths, hidden) {
  const found = [];
  const walk = file => {
    if (!fs.existsSync(file) || (!hidden && path.basename(file).startsWith('.'))) return;
    if (fs.statSync(file).isDirectory()) fs.readdirSync(file).forEach(name => walk(path.join(file, name)));
    else found.push(file);
  };
  lines(paths).forEach(one => walk(path.resolve(at.workspace, one)));
  return found;
}

function common(folders) {
  let root = folders[0];
  while (!folders.every(folder => `${folder}/`.startsWith(`${root}/`))) root = path.dirname(root);
  return root;
}
