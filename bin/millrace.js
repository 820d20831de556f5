#!/usr/bin/env node
"use strict";
// Old syntax on purpose: this must run on whatever Node there is, to say what is wrong with it.
var fs = require("node:fs");
var path = require("node:path");

var root = path.join(__dirname, "..");
var parts = process.versions.node.split(".").map(Number);
var isGood =
  parts[0] > 25 ||
  (parts[0] === 24 && parts[1] >= 15) ||
  (parts[0] === 22 && (parts[1] > 22 || (parts[1] === 22 && parts[2] >= 2)));

if (isGood) start();
else {
  // The Node that `npm ci` brings into a checkout.
  var own = path.join(root, "node_modules", "node", "bin", process.platform === "win32" ? "node.exe" : "node");
  if (process.env.MILLRACE_LAUNCHED === undefined && fs.existsSync(own)) handOver(own);
  else {
    process.stderr.write(
      "millrace: Node " +
        process.versions.node +
        " is too old. Needed is 22.22.2 or newer of 22, 24.15 or newer of 24, or 26 " +
        "and later (https://nodejs.org). In a checkout `npm ci` brings one.\n",
    );
    process.exit(1);
  }
}

function start() {
  delete process.env.MILLRACE_LAUNCHED;
  var inModules = root.split(path.sep).indexOf("node_modules") !== -1;
  var compiled = path.join(root, "dist", "src", "cli", "main.js");
  // Node strips no types inside node_modules; a checkout runs its sources, and never an old build of them.
  var main =
    inModules || !fs.existsSync(path.join(root, "src", "cli", "main.ts"))
      ? compiled
      : path.join(root, "src", "cli", "main.ts");
  // What was compiled once need not be compiled again: this halves the time of a short command.
  var modules = inModules ? root.slice(0, root.lastIndexOf("node_modules") + 12) : path.join(root, "node_modules");
  require("node:module").enableCompileCache(path.join(modules, ".cache", "millrace"));
  void import(require("node:url").pathToFileURL(main).href).then(function (module) {
    return module.start();
  });
}

function handOver(node) {
  var env = Object.assign({}, process.env, { MILLRACE_LAUNCHED: "1" });
  var child = require("node:child_process").spawn(node, [__filename].concat(process.argv.slice(2)), {
    stdio: "inherit",
    env: env,
  });
  // Ctrl-C, and the end of a terminal, are told to all that run in front of it: a second time would mean "at once".
  var isAtTerminal = process.stdin.isTTY || process.stdout.isTTY || process.stderr.isTTY;
  ["SIGINT", "SIGTERM", "SIGHUP"].forEach(function (signal) {
    process.on(signal, function () {
      if (signal === "SIGTERM" || !isAtTerminal) child.kill(signal);
    });
  });
  child.on("exit", function (code, signal) {
    if (signal === null) process.exit(code);
    process.removeAllListeners(signal);
    process.kill(process.pid, signal);
  });
}
