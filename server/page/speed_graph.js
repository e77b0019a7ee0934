// A graph of the tokens per second while answers arrive.
import {make, makeSvg} from './elements.js';

const WIDTH = 300;
const HEIGHT = 90;
const MAX_SAMPLES = 120;
const SAMPLE_MS = 500;
// A speed is that of the last tokens: at least so many, and at least those of so many milliseconds.
const MIN_TOKENS = 8;
const WINDOW_MS = 2000;
// Of less, no speed can be told: a network may deliver many tokens at the same time.
const MIN_SECONDS = 0.2;

// The speed of the tokens with these times, in tokens per second; 0 if the time is too short.
export function speedOf(times) {
  const first = Math.max(
      0,
      Math.min(
          times.length - MIN_TOKENS, times.findIndex((time) => time > times.at(-1) - WINDOW_MS)));
  const seconds = (times.at(-1) - times[first]) / 1000;
  return seconds >= MIN_SECONDS ? (times.length - 1 - first) / seconds : 0;
}

// A number of 1, 2 or 5 and zeros that is not smaller.
function roundUp(value) {
  const power = 10 ** Math.floor(Math.log10(Math.max(value, 1)));
  return [1, 2, 5, 10].map((digit) => digit * power).find((rounded) => rounded >= value);
}

export class SpeedGraph {
  constructor(element) {
    this.element = element;
    this.samples = [];  // Null between answers.
    this.times = [];
    this.draw();
  }

  begin() {
    this.times = [];
    if (this.samples.length) this.add(null);
    clearInterval(this.timer);
    this.timer = setInterval(() => this.sample(), SAMPLE_MS);
  }

  token(time) {
    this.times.push(time);
    if (this.times.length > 4096) this.times.splice(0, 2048);
  }

  // `speed` is the server's, if it said one: for answers that were too short for a sample.
  end(speed) {
    clearInterval(this.timer);
    this.sample();
    if (!this.samples.at(-1) && speed) this.add(speed);
    this.draw();
  }

  add(sample) {
    this.samples.push(sample);
    if (this.samples.length > MAX_SAMPLES) this.samples.shift();
  }

  sample() {
    const speed = speedOf(this.times);
    if (!speed) return;
    this.add(speed);
    this.draw();
  }

  // The lines between the gaps, as lists of points.
  lines(top) {
    const lines = [[]];
    this.samples.forEach((sample, i) => {
      if (sample === null)
        lines.push([]);
      else
        lines.at(-1).push([i * WIDTH / (MAX_SAMPLES - 1), HEIGHT - sample / top * (HEIGHT - 6)]);
    });
    return lines.filter((line) => line.length);
  }

  draw() {
    // The panel may be closed; it draws when it opens.
    if (this.element.closest('[hidden]')) return;
    const speeds = this.samples.filter((sample) => sample !== null);
    if (!speeds.length) {
      this.element.replaceChildren(make('p', {class: 'hint'}, 'Appears while an answer arrives.'));
      return;
    }
    const top = roundUp(Math.max(...speeds));
    const now = speeds.at(-1);
    const label = `Graph of tokens per second: ${now.toFixed(1)} last, from ${
                      Math.min(...speeds).toFixed(1)} ` +
        `to ${Math.max(...speeds).toFixed(1)}`;
    const svg = makeSvg('svg', {
      viewBox: `0 0 ${WIDTH} ${HEIGHT}`,
      class: 'graph',
      role: 'img',
      'aria-label': label,
      preserveAspectRatio: 'none'
    });
    for (const part of [0, 0.5, 1]) {
      const y = HEIGHT - part * (HEIGHT - 6);
      svg.append(makeSvg('path', {class: 'grid', d: `M0 ${y}H${WIDTH}`}));
    }
    for (const line of this.lines(top)) {
      const points = line.map(([x, y]) => `${x.toFixed(1)} ${y.toFixed(1)}`).join('L');
      svg.append(
          makeSvg('path', {
            class: 'area',
            d: `M${points}L${line.at(-1)[0]} ${HEIGHT}L${line[0][0]} ${HEIGHT}Z`
          }),
          makeSvg('path', {class: 'line', d: `M${points}h0.1`}));
    }
    this.element.replaceChildren(
        make('p', {}, make('strong', {}, now.toFixed(now < 100 ? 1 : 0)), ' tokens/s'), svg,
        make(
            'p', {class: 'axis', 'aria-hidden': 'true'}, make('span', {}, '0'),
            make('span', {}, `${top} at the top`)));
  }
}
