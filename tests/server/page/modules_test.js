// Tests of the page's modules that need no server, run in the browser by browser_test.py.
import {fencedFile, joinFiles, tooLong} from '/page/attachments.js';
import {readBlocks} from '/page/blocks.js';
import {formatBytes} from '/page/bytes.js';
import {CodeView} from '/page/code_view.js';
import {addMessage, choosePath, newConversation, pathOf, readConversation, requestMessages, titleFrom} from '/page/conversation.js';
import {readEvents} from '/page/event_stream.js';
import {readMetric} from '/page/figures_view.js';
import {readTokens} from '/page/highlight.js';
import {readInline, safeUrl} from '/page/inline.js';
import {MarkdownView} from '/page/markdown.js';
import {chooseModel} from '/page/model_picker.js';
import {markParts, searchConversations, searchPattern} from '/page/search.js';
import {speedOf} from '/page/speed_graph.js';
import {Store} from '/page/store.js';

function html(markdown) {
  const container = document.createElement('div');
  new MarkdownView(container).update(markdown);
  return container.innerHTML.replaceAll(' dir="auto"', '');
}

const link = (href, text) =>
    `<a href="${href}" title="${href}" target="_blank" rel="noopener noreferrer">${text}</a>`;

// Markdown and the elements that it becomes.
const SHOWN = [
  ['plain', '<p>plain</p>'],
  ['', ''],
  ['a\nb', '<p>a<br>b</p>'],
  ['a\n\nb', '<p>a</p><p>b</p>'],
  [
    '*a* **b** ***c*** ~~d~~',
    '<p><em>a</em> <strong>b</strong> <em><strong>c</strong></em> <del>d</del></p>'
  ],
  ['_a_ __b__ snake_case_name', '<p><em>a</em> <strong>b</strong> snake_case_name</p>'],
  ['2 * 3 * 4', '<p>2 * 3 * 4</p>'],
  ['**a *b* c**', '<p><strong>a <em>b</em> c</strong></p>'],
  ['**open', '<p>**open</p>'],
  ['`a<b>` and ``c`d``', '<p><code>a&lt;b&gt;</code> and <code>c`d</code></p>'],
  ['`*a*`', '<p><code>*a*</code></p>'],
  ['`open', '<p>`open</p>'],
  ['\\*a\\*', '<p>*a*</p>'],
  ['&lt;b&gt; &amp;amp; &copy;', '<p>&lt;b&gt; &amp;amp; &amp;copy;</p>'],
  ['# A\n## B #\n#no', '<h3 class="heading-1">A</h3><h4 class="heading-2">B</h4><p>#no</p>'],
  ['a\n---\nb', '<p>a</p><hr><p>b</p>'],
  [
    '- a\n- b\n  - c',
    '<ul><li><span>a</span></li><li><span>b</span><ul><li><span>c</span></li></ul></li></ul>'
  ],
  ['3. a\n4. b', '<ol start="3"><li><span>a</span></li><li><span>b</span></li></ol>'],
  [
    '1. a\n   - b\n\n2. c',
    '<ol start="1"><li><span>a</span><ul><li><span>b</span></li></ul></li>' +
        '<li><span>c</span></li></ol>'
  ],
  ['- a\n\n  b', '<ul><li><span>a</span><p>b</p></li></ul>'],
  ['It was\n1984. Yes', '<p>It was<br>1984. Yes</p>'],
  ['> a\n> > b', '<blockquote><p>a</p><blockquote><p>b</p></blockquote></blockquote>'],
  ['[x](https://a.b/c_(d))', `<p>${link('https://a.b/c_(d)', 'x')}</p>`],
  ['[**x**](https://a.b "t")', `<p>${link('https://a.b/', '<strong>x</strong>')}</p>`],
  ['<https://a.b>', `<p>${link('https://a.b/', 'https://a.b')}</p>`],
  ['See https://a.b/c.', `<p>See ${link('https://a.b/c', 'https://a.b/c')}.</p>`],
  ['(https://a.b/c)', `<p>(${link('https://a.b/c', 'https://a.b/c')})</p>`],
  ['[m](mailto:a@b.c)', `<p>${link('mailto:a@b.c', 'm')}</p>`],
  ['![alt](http://evil/x.png)', `<p>${link('http://evil/x.png', 'image: alt')}</p>`],
  ['![](http://evil/x.png)', `<p>${link('http://evil/x.png', 'image: http://evil/x.png')}</p>`],
  ['`\\(a\\)`', '<p><code>\\(a\\)</code></p>'],
];

const math = (text) => `<code class="math">${text}</code>`;
const formula = (text) => '<pre class="math" dir="ltr" tabindex="0" aria-label="formula">' +
    `${text}</pre>`;

// Formulas, which stay as they are written.
const FORMULAS = [
  ['\\(a_1 * b_2 * c\\\\d\\)', `<p>${math('\\(a_1 * b_2 * c\\\\d\\)')}</p>`],
  ['so \\(x\\), *y*', `<p>so ${math('\\(x\\)')}, <em>y</em></p>`],
  ['$x_1^2$ and $y_2$.', `<p>${math('$x_1^2$')} and ${math('$y_2$')}.</p>`],
  ['$\\$5 \\% *a*$', `<p>${math('$\\$5 \\% *a*$')}</p>`],
  ['It is $$a_b$$ here', `<p>It is ${math('$$a_b$$')} here</p>`],
  ['Then \\[a_b\\] holds', `<p>Then ${math('\\[a_b\\]')} holds</p>`],
  ['From $5 to $6', '<p>From $5 to $6</p>'],
  ['$5-$6', '<p>$5-$6</p>'],
  ['$ x $', '<p>$ x $</p>'],
  ['$a `b$`', '<p>$a <code>b$</code></p>'],
  ['a $$', '<p>a $$</p>'],
  ['\\(open *a*', '<p>(open <em>a</em></p>'],
  ['a\\\\(b\\)', '<p>a\\(b)</p>'],
  ['\\[\n- a &= b \\\\\n- c\n\\]\nd', `${formula('\\[\n- a &amp;= b \\\\\n- c\n\\]')}<p>d</p>`],
  ['It is\n$$x\n= y$$.', `<p>It is</p>${formula('$$x\n= y$$.')}`],
  ['$$x', formula('$$x')],
  ['\\[a\n\nb', '<p>[a</p><p>b</p>'],
];

// Programs, and their tokens that have colors.
const PROGRAMS = [
  ['js', 'let a = "x\\"y"; // 1\n/* 2', 'word:let text:"x\\"y" comment:// 1 comment:/* 2'],
  ['js', '`a ${b}\n` + 0x1F', 'text:`a ${b}\n` number:0x1F'],
  ['c++', 'int x = 1\'000; char c = \'"\';', 'word:int number:1\'000 word:char text:\'"\''],
  ['Python', 'def f(): # x\n  """a\n"b" """', 'word:def comment:# x text:"""a\n"b" """'],
  ['python', 'x = "open\nif x', 'text:"open word:if'],
  ['rust', 'fn f<\'a>(x: &\'a u8) {\'{\'}', 'word:fn text:\'{\''],
  ['sql', 'Select a -- x\nfrom b - 1', 'word:Select comment:-- x word:from number:1'],
  ['sh', 'if [ $x ]; then # y', 'word:if word:then comment:# y'],
  ['json', '{"a": [1.5, true]}', 'text:"a" number:1.5 word:true'],
  [
    'html', '<!-- a --><b c="d">&amp;</b>',
    'comment:<!-- a --> word:<b text:"d" number:&amp; word:</b'
  ],
  ['css', 'a { color: red; /* b */ }', 'comment:/* b */'],
  ['unknown', 'let a = 1', ''],
  ['', 'let a = 1', ''],
];

// Attacks, of which every character must be shown.
const TEXTS = [
  '<script>alert(1)</script>',
  '<img src=x onerror=alert(1)>',
  '<svg onload=alert(1)>',
  '<b>x</b>',
  '<iframe src="https://evil"></iframe>',
  '[x](javascript:alert(1))',
  '[x](JaVaScRiPt:alert(1))',
  '[x](java\u0001script:alert(1))',
  '[x](data:text/html,<script>alert(1)</script>)',
  '[x](vbscript:x)',
  '[x](//evil/x)',
  '[x](/v1/models)',
  '[x](page/main.js)',
  '[x](file:///etc/passwd)',
  '[x](blob:x)',
  '![x](data:image/svg+xml,x)',
  '<javascript:alert(1)>',
  '[x](https://)',
  '[x]: javascript:alert(1)',
  '[x](https://a b)',
  '![x](javascript:alert(1))',
  '[[x](javascript:alert(1))](javascript:alert(2))',
];

// Texts that could take long; the page reads an answer again for each piece of it.
const LONG = {
  asterisks: '*'.repeat(1e5),
  emphasis: '*a '.repeat(3e4),
  closed: '*a* '.repeat(3e4),
  brackets: '['.repeat(1e5),
  links: '[a](b '.repeat(2e4),
  openLinks: '[a](http:'.repeat(1e4),
  quotes: '>'.repeat(1e5),
  backticks: '`a``'.repeat(3e4),
  spaces: `# a${' '.repeat(1e5)}b`,
  rules: '- '.repeat(5e4) + 'x',
  lists: Array.from({length: 2000}, (_, i) => `${' '.repeat(i % 60)}- a`).join('\n'),
  pipes: `${'|a'.repeat(5e4)}\n${'|-'.repeat(5e4)}`,
  tables: 'a|b\n-|-\n'.repeat(1e4),
  addresses: `http://a${')'.repeat(1e5)}`,
  tildes: '~~a'.repeat(3e4),
  underscores: '_a_b'.repeat(3e4),
  images: '![a]('.repeat(2e4),
  angles: '<http://a'.repeat(1e4),
  fences: '```\n'.repeat(2e4),
  parentheses: '\\('.repeat(5e4),
  closedParentheses: '\\(\\)'.repeat(3e4),
  dollars: '$a '.repeat(5e4),
  runsOfDollars: '$'.repeat(1e5),
  formulas: '$a$ '.repeat(3e4),
  openFormulas: `${'\\[\na\n'.repeat(2e4)}\n`,
  escapes: `$${'\\'.repeat(1e5)}`,
};

const failures = [];
function expectEqual(actual, expected, what) {
  const [a, b] =
      [actual, expected].map((value) => typeof value === 'string' ? value : JSON.stringify(value));
  if (a !== b) failures.push(`${what}:\n  ${a}\nis not\n  ${b}`);
}

function expectThrows(action, message, what) {
  try {
    action();
  } catch (error) {
    if (!error.message.includes(message)) failures.push(`${what}: ${error.message}`);
    return;
  }
  failures.push(`${what} throws nothing`);
}

function testMarkdown() {
  for (const [markdown, expected] of SHOWN)
    expectEqual(html(markdown), expected, JSON.stringify(markdown));
  for (const text of TEXTS) {
    const container = document.createElement('div');
    new MarkdownView(container).update(text);
    expectEqual(container.textContent, text, 'shown text');
    expectEqual(
        container.querySelectorAll(':not(p, a[href^="https://"])').length, 0,
        `elements of ${text}`);
  }
  expectEqual(safeUrl('https://a\n.b'), null, 'an address with a line end');
}

function testFormulas() {
  for (const [markdown, expected] of FORMULAS) {
    expectEqual(html(markdown), expected, JSON.stringify(markdown));
  }
}

const colored = (tokens) =>
    tokens.filter(({kind}) => kind).map(({kind, text}) => `${kind}:${text}`).join(' ');

function testHighlight() {
  for (const [language, text, expected] of PROGRAMS) {
    const tokens = [...readTokens(language, text)];
    expectEqual(tokens.map((token) => token.text).join(''), text, 'all characters');
    expectEqual(colored(tokens), expected, `${language}: ${text}`);
    // Read in parts, it has the same elements.
    const grown = new CodeView(language);
    for (let i = 1; i <= text.length; ++i) grown.update(text.slice(0, i));
    const whole = new CodeView(language);
    whole.update(text);
    expectEqual(grown.code.innerHTML, whole.code.innerHTML, `${language} in parts`);
  }
  const evil = new CodeView('html');
  evil.update('<img src=x onerror="alert(1)">');
  expectEqual(evil.code.querySelectorAll(':not(span)').length, 0, 'elements of code');
}

// Texts that are random, but have what tokens consist of, read in parts and as a whole.
function testGrowingCode() {
  const parts = [
    '"', '\'', '`', '/', '*', '#', '-', '<', '!', '>', '\\', '\n', ' ', 'if', 'a', '1', '.',
    '\u{1F999}'
  ];
  let state = 1;
  const random = (count) => {
    state = (state * 48271) % 2147483647;
    return state % count;
  };
  for (const language of ['js', 'rust', 'python', 'sql', 'yaml', 'css', 'html']) {
    for (let trial = 0; trial < 100; ++trial) {
      const grown = new CodeView(language);
      let text = '';
      for (let i = 0; i < 40; ++i) {
        text += parts[random(parts.length)];
        if (random(3) === 0) grown.update(text);
      }
      grown.update(text);
      const whole = new CodeView(language);
      whole.update(text);
      if (grown.code.innerHTML !== whole.code.innerHTML) {
        expectEqual(grown.code.innerHTML, whole.code.innerHTML, `${language} in parts: ${text}`);
        break;
      }
    }
  }
}

// Programs that could take long, as a whole and in parts.
function testTimeOfCode() {
  const texts = [
    '"'.repeat(1e5), '\''.repeat(1e5), '/*'.repeat(5e4), '<!--'.repeat(3e4), '\'\\'.repeat(5e4),
    '"""'.repeat(3e4), 'a'.repeat(1e5), '1\''.repeat(5e4), '\\'.repeat(1e5), '- '.repeat(5e4)
  ];
  for (const language of ['js', 'rust', 'python', 'sql', 'html']) {
    for (const text of texts) {
      const began = performance.now();
      const view = new CodeView(language);
      for (let end = text.length / 2; end < text.length; end += text.length / 20) {
        view.update(text.slice(0, end));
      }
      view.update(text);
      const ms = performance.now() - began;
      if (ms > 3000) failures.push(`${language} ${text.slice(0, 8)} took ${ms} ms`);
    }
  }
}

function testFiles() {
  expectEqual(
      fencedFile({name: 'a.Md', text: '```\nx\n```\n'}), 'a.Md:\n````md\n```\nx\n```\n````',
      'a file with a fence');
  expectEqual(fencedFile({name: 'Makefile', text: 'a'}), 'Makefile:\n```\na\n```', 'no ending');
  expectEqual(joinFiles({content: 'x'}), 'x', 'no files');
  expectEqual(tooLong('a', 10, 0, 0), '', 'a context that is not known');
  expectEqual(tooLong('a', 10, 80, 100), '', 'a file that fits');
  expectEqual(tooLong('a', 100, 0, 100).includes('the context has 100.'), true, 'a long file');
  expectEqual(tooLong('a', 30, 80, 100).includes('20 of 100 are left'), true, 'a late file');
  const conversation = newConversation({system: '', thinking: true, sampling: {}});
  addMessage(conversation, '', 'user', '', {files: [{name: 'a', text: 'b'}]});
  expectEqual(conversation.title, 'a', 'the title of a file');
  expectEqual(readConversation(structuredClone(conversation)), conversation, 'files that are kept');
  conversation.messages[0].files = [{name: 1}, null, 'x'];
  expectEqual('files' in readConversation(conversation).messages[0], false, 'files that are none');
}

function testSearch() {
  const marks = (query, text) => markParts(searchPattern(query), text)
                                     .map((part) => part.isMatch ? `[${part.text}]` : part.text)
                                     .join('');
  expectEqual(marks('A.b', 'xa.BaxB'), 'x[a.B]axB', 'marks');
  expectEqual(marks(' a  b ', 'a\nb'), '[a\nb]', 'spaces');
  expectEqual(
      marks('\\^$.*+?()[]{}|/-', '\\^$.*+?()[]{}|/-'), '[\\^$.*+?()[]{}|/-]',
      'marks of expressions');
  expectEqual(marks('ä', 'xÄ'), 'x[Ä]', 'an umlaut');
  expectEqual(searchPattern('  '), null, 'nothing');
  const conversation = newConversation({system: '', thinking: true, sampling: {}});
  const first = addMessage(conversation, '', 'user', `${'a '.repeat(50)}needle${' b'.repeat(50)}`);
  addMessage(conversation, first.id, 'assistant', 'other');
  const [found] = searchConversations(searchPattern('NEEDLE'), [conversation]);
  expectEqual(found.message.id, first.id, 'the message');
  expectEqual(/^…(a )+needle( b)+…$/.test(found.excerpt), true, found.excerpt);
  expectEqual(searchConversations(searchPattern('no'), [conversation]), [], 'nothing found');
  const other = addMessage(conversation, '', 'user', 'beside');
  choosePath(conversation, first);
  expectEqual(pathOf(conversation)[0].id, first.id, 'the chosen path');
  choosePath(conversation, other);
  expectEqual(pathOf(conversation)[0].id, other.id, 'another path');
}

function testModels() {
  const models = [{id: 'a'}, {id: 'b', status: {value: 'loaded'}}];
  expectEqual(chooseModel(models, 'a').id, 'a', 'the model that was chosen');
  expectEqual(chooseModel(models, 'c').id, 'b', 'the model that is loaded');
  expectEqual(chooseModel(models.slice(0, 1), null).id, 'a', 'the first model');
  const failed = {id: 'x', status: {value: 'unloaded', failed: true}};
  expectEqual(chooseModel([failed, models[0]], null).id, 'a', 'a model that did not fail');
  expectEqual(chooseModel([failed], null).id, 'x', 'the only model');
  expectEqual(chooseModel([], 'a') === undefined, true, 'no model');
}

function testBlocks() {
  const code = html('```js\na < b\n\n  *c*\n```\nd');
  expectEqual(
      code.includes('<code>a &lt; b\n\n  *c*</code>') && code.endsWith('<p>d</p>'), true, code);
  expectEqual(readBlocks('```\nopen')[0].text, 'open', 'a fence without an end');
  expectEqual(
      readBlocks('- a\n  ```\n  b\n  ```')[0].items[0].blocks[1].text, 'b', 'a fence in a list');
  expectEqual(
      readBlocks('| a | b |\n|:--|--:|\n| `x|y` | \\| |')[0], {
        type: 'table',
        alignments: ['left', 'right'],
        rows: [['a', 'b'], ['`x|y`', '|']],
        source: '| a | b |\n|:--|--:|\n| `x|y` | \\| |'
      },
      'a table');
  expectEqual(
      html('| a |\n|---|\n| <b> |').includes('<td class="align-left">&lt;b&gt;</td>'), true,
      'a cell');
  expectEqual(
      readBlocks('- [ ] a\n- [x] b')[0].items.map((item) => item.task), ['open', 'done'], 'tasks');
}

function testTime() {
  for (const [name, text] of Object.entries(LONG)) {
    const began = performance.now();
    const container = document.createElement('div');
    new MarkdownView(container).update(text);
    const ms = performance.now() - began;
    // A quadratic time would be minutes.
    if (ms > 3000) failures.push(`${name} took ${ms} ms`);
    let depth = 0;
    for (let node = container; node; node = node.lastElementChild) ++depth;
    if (depth > 200) failures.push(`${name} is ${depth} elements deep`);
  }
}

function testGrowing() {
  const container = document.createElement('div');
  const view = new MarkdownView(container);
  view.update('# a\n\nb');
  const heading = container.firstChild;
  const whole = '# a\n\nb **c**\n\n- d';
  for (let i = 8; i <= whole.length; ++i) view.update(whole.slice(0, i));
  expectEqual(container.firstChild === heading, true, 'an element that stays');
  expectEqual(container.innerHTML.replaceAll(' dir="auto"', ''), html(whole), 'a text that grew');
  view.update('e');
  expectEqual(container.textContent, 'e', 'a text that shrank');
}

async function testEvents() {
  const text =
      'data: {"a":"ä"}\r\n\r\n: comment\n\ndata: b\ndata: c\n\nevent: x\ndata:d\n\ndata: cut';
  const bytes = new TextEncoder().encode(text);
  for (const size of [1, 2, 7, bytes.length]) {
    const found = [];
    const stream = new ReadableStream({
      start(controller) {
        for (let i = 0; i < bytes.length; i += size) controller.enqueue(bytes.slice(i, i + size));
        controller.close();
      }
    });
    for await (const data of readEvents(stream)) found.push(data);
    expectEqual(found, ['{"a":"ä"}', 'b\nc', 'd'], `events in pieces of ${size}`);
  }
}

function testConversation() {
  const conversation =
      newConversation({system: ' Be brief. ', thinking: true, sampling: {temperature: 0}});
  const first = addMessage(conversation, '', 'user', 'Hello!\nWho are you?');
  addMessage(conversation, first.id, 'assistant', 'one');
  const second = addMessage(conversation, first.id, 'assistant', 'two');
  expectEqual(conversation.title, 'Hello!', 'the title');
  expectEqual(
      pathOf(conversation).map(({content}) => content), ['Hello!\nWho are you?', 'two'],
      'the path');
  expectEqual(
      requestMessages(conversation, second.id).map(({role}) => role),
      ['system', 'user', 'assistant'], 'roles');
  expectEqual(
      readConversation(JSON.parse(JSON.stringify(conversation))), conversation,
      'reading what was written');
  expectEqual(Array.from(titleFrom('🦙'.repeat(100))).length, 60, 'a long title');
  for (const bad
           of [null, [], 1, {}, {id: '<b>', messages: []}, {id: 'a', messages: [null]},
               {id: 'a', messages: [{}]},
               {id: 'a', messages: [{id: 'b', parent: 'c', role: 'user', content: ''}]},
               {id: 'a', messages: [{id: 'b', parent: '', role: 'system', content: ''}]},
               {id: 'a', messages: [{id: 'b', parent: 'b', role: 'user', content: ''}]}]) {
    expectThrows(() => readConversation(bad), 'this', JSON.stringify(bad));
  }
  const settings =
      readConversation({
        id: 'a',
        messages: [],
        settings:
            {system: 1, thinking: 'x', sampling: {temperature: -1, top_k: 5, evil: 1, min_p: 'x'}}
      }).settings;
  expectEqual(settings, {system: '', thinking: true, sampling: {top_k: 5}}, 'settings');
}

// A storage of this size in characters.
class SmallStorage {
  constructor(size) {
    this.size = size;
    this.map = new Map();
  }
  get length() {
    return this.map.size;
  }
  key(i) {
    return [...this.map.keys()][i];
  }
  getItem(key) {
    return this.map.get(key) ?? null;
  }
  removeItem(key) {
    this.map.delete(key);
  }
  setItem(key, value) {
    if (value.length > this.size) throw new Error('full');
    this.map.set(key, value);
  }
}

function testStore() {
  let isFull = false;
  const store = new Store(new SmallStorage(2000), () => {
    isFull = true;
  });
  const conversation = newConversation(store.settings);
  addMessage(conversation, '', 'user', 'Hello!');
  store.save(conversation);
  const file = store.exportText();
  expectEqual(store.importText(file), 1, 'an import');
  expectEqual(new Store(store.storage).list().length, 2, 'conversations that are kept');
  expectThrows(() => store.importText('{'), 'not JSON', 'a file');
  expectThrows(() => store.importText('{}'), 'no conversations', 'another file');
  expectThrows(
      () => store.importText(file.replace('"version": 1', '"version": 2')), 'newer',
      'a newer file');
  expectThrows(
      () => store.importText(file.replace('"role": "user"', '"role": "x"')),
      'message 1 of conversation 1', 'a wrong message');
  expectThrows(
      () =>
          store.importText(file.replace('"content": "Hello!"', `"content": "${'x'.repeat(3000)}"`)),
      'no space', 'a file that is too large');
  expectEqual(store.list().length, 2, 'conversations after failed imports');
  expectEqual(isFull, true, 'a full storage is said');
  store.storage.map.set('cria.conversation.bad', '{"id": 1}');
  expectEqual(new Store(store.storage).list().length, 2, 'a damaged conversation is left out');
}

function testFigures() {
  expectEqual(
      readMetric('# x\na_requests_processing 3\nb 4\n', 'requests_processing'), 3, 'a metric');
  expectEqual(readMetric('a{x="y"} 3e2\n', 'a'), 300, 'a metric with a label');
  expectEqual(readMetric('a 1', 'b') === undefined, true, 'a metric that is missing');
  expectEqual(
      [999, 1000, 1e6, 123e6, 1.5e9].map(formatBytes),
      ['999 B', '1.0 kB', '1.0 MB', '123 MB', '1.50 GB'], 'sizes');
  expectEqual(speedOf(Array.from({length: 30}, (_, i) => i * 100)), 10, 'a speed');
  expectEqual(speedOf([5]), 0, 'the speed of one token');
  expectEqual(readInline('a')[0], {type: 'text', text: 'a'}, 'text');
}

// Resolves to a list of failures.
export async function run() {
  for (const test
           of [testMarkdown, testFormulas, testHighlight, testGrowingCode, testTimeOfCode,
               testBlocks, testTime, testGrowing, testEvents, testConversation, testFiles,
               testSearch, testModels, testStore, testFigures]) {
    try {
      await test();
    } catch (error) {
      failures.push(`${test.name}: ${error.stack}`);
    }
  }
  return failures;
}
