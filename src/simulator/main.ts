import { runSchedule } from "./schedule.ts";
const seed = Number(process.argv[2] ?? 1);
const count = Number(process.argv[3] ?? 1);
let steps = 0;
const t = performance.now();
for (let s = seed; s < seed + count; s++) {
  const r = await runSchedule({ seed: s });
  steps += r.steps;
  const open = r.world.remains.headers.filter((h) => h.class === "open" && h.status !== "COUNTING").length;
  if (count < 20 || (r.world.liveness && open > r.world.poisoned.length))
    console.log(
      s,
      r.world.liveness ? "live" : "safe",
      r.world.lossy,
      r.steps,
      r.simulatedMs,
      "headers",
      r.world.remains.headers.length,
      "open",
      open,
      "poison",
      r.world.poisoned.length,
      [...r.faults].map(([k, v]) => `${k}:${v}`).join(" "),
      "bad folds",
      r.world.remains.folds.filter((f) => f.whole !== f.fromSnapshot || f.whole !== f.again).length,
    );
}
console.log(count, "schedules", steps, "steps", Math.round(performance.now() - t), "ms");
