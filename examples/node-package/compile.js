// Compiles and applies globs; prints the fastest of ten rounds, and the number of matches.
'use strict';

const picomatch = require(process.argv[2]);
const globs = ['**/*.js', 'src/**/{a,b,c}.ts', '!(node_modules)/**', '*.{png,jpg,gif}', 'docs/[a-z]*/**/index.md'];
const paths = ['a.js', 'src/x/b.ts', 'node_modules/m/i.js', 'image.png', 'docs/guide/one/index.md'];

let matches = 0;
let fastest = Infinity;
for (let round = 0; round < 10; round++) {
  const began = process.hrtime.bigint();
  matches = 0;
  for (let repeat = 0; repeat < 300; repeat++) {
    for (const glob of globs) {
      const isMatch = picomatch(glob);
      for (const path of paths) matches += isMatch(path) ? 1 : 0;
    }
  }
  fastest = Math.min(fastest, Number(process.hrtime.bigint() - began) / 1e9);
}
console.log(`seconds ${fastest.toFixed(9)}`);
console.log(`matches ${matches}`);
