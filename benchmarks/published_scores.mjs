// The score step of Mastra's own scorer, of every number of "yes" in every number of verdicts.
// Run by benchmarks/published_scores.py, in a folder that has @mastra/evals: node FILE MOST SCALE…
import { createRequire } from "node:module";
import { pathToFileURL } from "node:url";

const require = createRequire(pathToFileURL(`${process.cwd()}/`));
const { createFaithfulnessScorer } = await import(
  pathToFileURL(require.resolve("@mastra/evals/scorers/prebuilt")).href
);

const [most, ...scales] = process.argv.slice(2).map(Number);
const rows = [];
for (const scale of scales) {
  const scorer = createFaithfulnessScorer({ model: "openai/none-is-asked", options: { scale } });
  const { definition } = scorer.steps.find((step) => step.name === "generateScore");
  for (let total = 0; total <= most; total += 1) {
    for (let yes = 0; yes <= total; yes += 1) {
      const verdicts = Array.from({ length: total }, (_, at) => ({
        verdict: at < yes ? "yes" : at % 2 ? "no" : "unsure",
        reason: "",
      }));
      rows.push([yes, total, scale, definition({ results: { analyzeStepResult: { verdicts } } })]);
    }
  }
}
console.log(JSON.stringify(rows));
