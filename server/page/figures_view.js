// The panel with the memory, the speed, and the figures of the server and of the last answer.
import {make} from './elements.js';
import {MemoryView} from './memory_view.js';
import {SpeedGraph} from './speed_graph.js';

const REFRESH_MS = 3000;

// The value of a metric without labels whose name ends like this, in Prometheus' text. Undefined if
// there is none.
export function readMetric(text, end) {
  const found = new RegExp(`^[a-zA-Z_:]*${end}(?:\\{[^}\\n]*\\})? (\\S+)`, 'm').exec(text);
  const value = found ? Number(found[1]) : NaN;
  return Number.isFinite(value) ? value : undefined;
}

export const formatSeconds = (seconds) =>
    seconds < 1 ? `${Math.round(1000 * seconds)} ms` : `${seconds.toFixed(1)} s`;

export const formatRate = (rate) => rate.toFixed(rate < 100 ? 1 : 0);

export const plural = (count, one, many) => `${count} ${count === 1 ? one : many}`;

export class FiguresView {
  // `onProps` is called with the server's properties each time that they were read.
  constructor(panel, {memory, graph, facts}, api, onProps) {
    Object.assign(this, {panel, facts, api, onProps});
    this.memory = new MemoryView(memory);
    this.graph = new SpeedGraph(graph);
    this.contextSize = 0;
    this.queue = '';
  }

  open() {
    this.graph.draw();
    this.refresh();
    clearInterval(this.timer);
    this.timer = setInterval(() => {
      if (this.panel.hidden)
        clearInterval(this.timer);
      else if (!document.hidden)
        this.refresh();
    }, REFRESH_MS);
  }

  // Errors are shown where a person asks for something, not here.
  async refresh() {
    const [props, metrics] = await Promise.allSettled([this.api.props(), this.api.metrics()]);
    if (props.status === 'fulfilled') this.onProps(props.value);
    if (metrics.status === 'fulfilled') this.showQueue(metrics.value);
  }

  showProps(props) {
    this.contextSize = Number(props.default_generation_settings?.n_ctx) || 0;
    this.memory.show(props.memory_plan, props.memory);
    this.showFacts();
  }

  showQueue(metrics) {
    const running = readMetric(metrics, 'requests_processing');
    const waiting = readMetric(metrics, 'requests_waiting');
    this.queue = running === undefined ? '' :
                                         `${plural(running, 'answer', 'answers')} under way` +
            (waiting ? `, ${waiting} waiting` : '');
    this.showFacts();
  }

  // Those of the newest answer of the open conversation.
  showFigures(figures) {
    this.figures = figures;
    this.showFacts();
  }

  showFacts() {
    const {
      prompt_tokens: prompt,
      cached_tokens: cached,
      tokens,
      first_token_seconds: first,
      tokens_per_second: speed
    } = this.figures ?? {};
    const facts = [];
    if (prompt)
      facts.push([
        'Prompt', plural(prompt, 'token', 'tokens') + (cached ? `, ${cached} known already` : '')
      ]);
    if (first) facts.push(['First token', `after ${formatSeconds(first)}`]);
    if (tokens)
      facts.push([
        'Answer', plural(tokens, 'token', 'tokens') + (speed ? ` at ${formatRate(speed)}/s` : '')
      ]);
    if (this.contextSize) facts.push(['Context', this.contextText((prompt ?? 0) + (tokens ?? 0))]);
    if (this.queue) facts.push(['Server', this.queue]);
    this.facts.replaceChildren(
        ...facts.flatMap(([name, value]) => [make('dt', {}, name), make('dd', {}, value)]));
  }

  contextText(used) {
    const size = this.contextSize.toLocaleString('en');
    return used ? `${used.toLocaleString('en')} of ${size} tokens` : `${size} tokens`;
  }
}
