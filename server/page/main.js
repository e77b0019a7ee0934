// Connects the parts of the page.
import {Answers} from './answers.js';
import {Api} from './api.js';
import {Composer} from './composer.js';
import {addMessage, childrenOf, choosePath, newConversation, pathOf, titleFrom} from './conversation.js';
import {askKey, askName, confirmDeleteAll} from './dialogs.js';
import {make} from './elements.js';
import {FiguresView} from './figures_view.js';
import {Layout} from './layout.js';
import {ModelPicker} from './model_picker.js';
import {SearchView} from './search_view.js';
import {SettingsView} from './settings_view.js';
import {fillIcons, Notice, Sidebar} from './sidebar.js';
import {openStorage, Store} from './store.js';
import {Transcript} from './transcript.js';

const WAITING_TICK_MS = 1000;
const element = (id) => document.getElementById(id);

class Page {
  constructor() {
    fillIcons(document);
    this.api = new Api();
    this.notice = new Notice(element('notice'));
    this.store = new Store(
        openStorage('localStorage'),
        () => this.notice.show(
            'The browser has no space left for conversations: this one is lost when the page ' +
            'is closed. Export it, or delete others.'));
    this.model = '';
    this.contextSize = 0;        // In tokens; 0 if it is not known.
    this.thinkingVariable = '';  // Of the chat template; empty if it has none.
    this.picker = new ModelPicker(
        element('models'), openStorage('localStorage'), (model) => this.showModel(model));
    this.transcript = new Transcript(
        {
          scroller: element('scroller'),
          list: element('messages'),
          region: element('announcer'),
          jump: element('jump')
        },
        {
          edit: (message, text) => this.edit(message, text),
          goOn: (message) => this.goOn(message),
          regenerate: (message) => this.regenerate(message),
          choose: (message) => this.choose(message),
          askKey: (message) => this.answerWithKey(message),
          mayAnswer: () => !this.running()
        });
    this.sidebar = new Sidebar(element('conversations'), {
      open: (id, message) => this.openFound(this.store.get(id), message),
      rename: (id) => this.rename(id),
      remove: (id) => this.remove(id),
      exportOne: (id) => this.exportFile([this.store.get(id)])
    });
    this.search = new SearchView(
        {input: element('search'), status: element('search-status')}, () => this.showFound(),
        () => this.sidebar.openFirst());
    this.settings = new SettingsView(
        {
          system: element('system'),
          sampling: element('sampling'),
          reset: element('reset-sampling')
        },
        (settings) => this.changeSettings(settings));
    this.figures = new FiguresView(
        element('figures'),
        {memory: element('memory'), graph: element('graph'), facts: element('facts')}, this.api,
        (props) => this.takeProps(props));
    this.answers = new Answers(
        {api: this.api, store: this.store, graph: this.figures.graph},
        (answer) => this.transcript.updateAnswer(answer));
    this.composer = new Composer(
        {
          form: element('composer'),
          area: element('message'),
          button: element('send'),
          tray: {
            list: element('attachments'),
            button: element('attach'),
            input: element('attach-file'),
            target: element('composer')
          }
        },
        {
          send: (text, files) => this.send(text, files),
          stop: () => this.stop(),
          editLast: () => this.transcript.editLast(),
          count: (text) => this.countTokens(text),
          room: () => this.room(),
          say: (sentence) => this.notice.show(sentence)
        });
    this.layout = new Layout(() => this.figures.open());
    this.connectButtons();
    this.connectWindow();
    this.openConversation(this.store.list()[0] ?? newConversation(this.store.settings));
    element('message').focus();
    this.reconnect();
  }

  connectButtons() {
    const on = (id, handler) => element(id).addEventListener('click', handler);
    on('new', () => this.openNew());
    on('export', () => this.exportFile());
    on('import', () => element('import-file').click());
    on('delete-all', () => this.removeAll());
    element('import-file').addEventListener('change', (event) => this.importFile(event.target));
    element('thinking').addEventListener('change', (event) => this.changeSettings({
      ...this.conversation.settings,
      thinking: event.target.checked
    }));
  }

  connectWindow() {
    document.addEventListener('keydown', (event) => {
      if (event.key.toLowerCase() === 'k' && (event.ctrlKey || event.metaKey)) {
        event.preventDefault();
        this.startSearch();
      }
      if (event.key !== 'Escape' || event.isComposing) return;
      if (document.querySelector('dialog[open]') || this.layout.closeSidebar()) return;
      if (this.running())
        this.stop();
      else
        this.layout.closePanels();
    });
    // Another tab wrote a conversation.
    window.addEventListener('storage', (event) => {
      if (!this.store.readKey(event.key)) return;
      const mine = this.store.get(this.conversation.id);
      if (mine && mine !== this.conversation && !this.running())
        this.openConversation(mine);
      else
        this.showSidebar();
    });
    window.addEventListener('pagehide', () => {
      this.answers.leave();
    });
    setInterval(() => {
      const answer = this.running();
      if (answer && !answer.tokens) this.transcript.updateAnswer(answer);
    }, WAITING_TICK_MS);
  }

  // ---- The server

  // What the server is like is asked once, and answers wait until it has said it.
  reconnect() {
    this.connected = this.connect();
  }

  async connect() {
    try {
      await this.withKey(async () => {
        this.showModel(this.picker.show(await this.api.models()));
      });
      this.showConversation();
      this.takeProps(await this.api.props());
    } catch (error) {
      if (error.kind === 'network') {
        this.notice.show(
            'The server cannot be reached. Check that cria-serve is running.',
            {label: 'Try again', run: () => this.reconnect()});
      } else if (error.kind === 'key') {
        this.notice.show(
            'Without a key, the server answers nothing.',
            {label: 'Enter the key', run: () => this.reconnect()});
      }
      // Everything else will be said when it is in the way: a server may have no /props.
    }
  }

  // Runs a request, and again with other keys as long as the server wants one and the person enters
  // one.
  async withKey(request) {
    for (;;) {
      try {
        return await request();
      } catch (error) {
        if (error.kind !== 'key') throw error;
        const key = await askKey(this.api.key !== '');
        if (key === null) throw error;
        this.api.key = key.trim();
      }
    }
  }

  // An answer may have loaded a model, given up another, or failed to load it.
  async refreshModels() {
    if (!this.picker.hasChoice) return;
    try {
      this.showModel(this.picker.show(await this.api.models()));
    } catch {
      // The next request says what is wrong.
    }
  }

  // The model that answers next, as the list of models has it.
  showModel(model) {
    this.model = String(model?.id ?? '');
    this.contextSize = Number(model?.meta?.n_ctx) || 0;
    element('model').textContent = this.picker.hasChoice ? '' : this.model;
    if (this.model) this.transcript.setAuthor(this.model);
    element('welcome-text').textContent = `${this.model || 'The model'} runs on this server. ` +
        'What you write stays there and in this browser.';
    this.showThinking(model?.thinking_variable);
  }

  showThinking(variable) {
    this.thinkingVariable = String(variable ?? '');
    element('thinking-switch').hidden = !this.thinkingVariable;
  }

  takeProps(props) {
    const defaults = props.default_generation_settings ?? {};
    this.settings.showDefaults({...defaults, ...defaults.params});
    this.contextSize ||= Number(defaults.n_ctx) || 0;
    // A server with several models tells of each in its list.
    if (!this.picker.hasChoice) this.showThinking(props.thinking_variable);
    this.figures.showProps(props);
  }

  // ---- Conversations

  openConversation(conversation) {
    this.conversation = conversation;
    this.settings.show(conversation.settings);
    element('thinking').checked = conversation.settings.thinking;
    this.layout.toggleSidebar(false);
    this.showConversation();
  }

  // Opens a conversation at the message that a search has found, which may be undefined.
  openFound(conversation, message) {
    if (message && !pathOf(conversation).includes(message)) {
      choosePath(conversation, message);
      this.store.save(conversation);
    }
    this.openConversation(conversation);
    const range = this.markFound(message);
    (range?.startContainer.parentElement ?? this.transcript.elementOf(message))?.scrollIntoView({
      block: 'center'
    });
  }

  startSearch() {
    if (document.querySelector('dialog[open]')) return;
    if (element('open-sidebar').checkVisibility()) this.layout.toggleSidebar(true);
    element('search').focus();
    element('search').select();
  }

  showFound() {
    this.showSidebar();
    this.markFound();
  }

  markFound(message) {
    const list = element('messages');
    return this.search.mark(list, this.transcript.elementOf(message) ?? list);
  }

  openNew() {
    this.search.clear();
    this.openConversation(newConversation(this.store.settings));
    element('message').focus();
  }

  showConversation() {
    const {conversation} = this;
    const path = pathOf(conversation);
    this.transcript.show(conversation, (message) => this.answers.get(message));
    element('welcome').hidden = path.length > 0;
    element('title').textContent = conversation.title || 'New conversation';
    document.title = conversation.title ? `${conversation.title} – Cria` : 'Cria';
    this.figures.showFigures(path.findLast((message) => message.figures)?.figures);
    this.composer.setRunning(Boolean(this.running()));
    this.showSidebar();
  }

  showSidebar() {
    const list = this.store.list();
    this.sidebar.show(
        this.search.select(list), this.conversation.id, (id) => this.answers.runningIn(id),
        this.search.pattern);
    for (const id of ['export', 'delete-all', 'search']) element(id).hidden = !list.length;
  }

  changeSettings(settings) {
    this.conversation.settings = settings;
    this.store.settings = settings;
    if (this.store.get(this.conversation.id)) this.store.save(this.conversation);
  }

  async rename(id) {
    const conversation = this.store.get(id);
    const name = await askName(conversation.title);
    if (!name?.trim()) return;
    conversation.title = titleFrom(name);
    this.store.save(conversation);
    this.showConversation();
  }

  remove(id) {
    const conversation = this.store.get(id);
    this.answers.stopAllOf(id);
    this.store.remove(id);
    if (id === this.conversation.id)
      this.openConversation(this.store.list()[0] ?? newConversation(this.store.settings));
    else
      this.showSidebar();
    this.notice.show(`Deleted “${conversation.title || 'New conversation'}”.`, {
      label: 'Undo',
      run: () => {
        this.store.save(conversation);
        this.openConversation(conversation);
      }
    });
    element('message').focus();
  }

  async removeAll() {
    const list = this.store.list();
    if (!await confirmDeleteAll(list.length)) return;
    for (const {id} of list) {
      this.answers.stopAllOf(id);
      this.store.remove(id);
    }
    this.openNew();
  }

  exportFile(conversations) {
    const url = URL.createObjectURL(
        new Blob([this.store.exportText(conversations)], {type: 'application/json'}));
    const name = conversations?.length === 1 ?
        conversations[0].title.replace(/[^\p{L}\p{N}]+/gu, '-') :
        'conversations';
    make('a', {href: url, download: `cria-${name.replace(/^-|-$/g, '') || 'conversation'}.json`})
        .click();
    setTimeout(() => URL.revokeObjectURL(url), 60000);
  }

  async importFile(input) {
    const [file] = input.files;
    input.value = '';
    if (!file) return;
    try {
      const count = this.store.importText(await file.text());
      this.showSidebar();
      this.notice.show(
          count === 1 ? 'Imported one conversation.' : `Imported ${count} conversations.`);
    } catch (error) {
      this.notice.show(error.message);
    }
  }

  // ---- Answers

  // The answer under way in the open conversation.
  running() {
    return this.answers.runningIn(this.conversation.id);
  }

  stop() {
    this.running()?.stop();
  }

  send(text, files) {
    const parent = pathOf(this.conversation).at(-1)?.id ?? '';
    const others = files.length ? {files} : {};
    this.answer(addMessage(this.conversation, parent, 'user', text, others));
  }

  async countTokens(text) {
    await this.connected;
    return this.api.countTokens(this.model, text);
  }

  // The tokens of the context, and those that the conversation takes of it.
  room() {
    const figures = pathOf(this.conversation).findLast((message) => message.figures)?.figures;
    return {
      taken: (figures?.prompt_tokens ?? 0) + (figures?.tokens ?? 0),
      context: this.contextSize
    };
  }

  edit(message, text) {
    if (this.running()) return;
    const {conversation} = this;
    if (message.role === 'user') {
      const others = message.files ? {files: message.files} : {};
      this.answer(addMessage(conversation, message.parent, 'user', text, others));
    } else if (text !== message.content) {
      addMessage(conversation, message.parent, 'assistant', text, {end: 'edited'});
      this.store.save(conversation);
      this.showConversation();
    }
  }

  // Continues an answer. What was said after it followed from its present text, so that a longer
  // one stands beside it then.
  goOn(message) {
    if (this.running()) return;
    const {conversation} = this;
    this.answers.forget(message);
    if (childrenOf(conversation, message.id).length) {
      const {parent, role, content, id: _, ...others} = structuredClone(message);
      this.fill(addMessage(conversation, parent, role, content, others));
    } else {
      this.fill(message);
    }
  }

  regenerate(message) {
    if (this.running()) return;
    // Another answer stands beside this one, unless it is empty.
    if (!message.content && !message.reasoning) {
      this.conversation.messages = this.conversation.messages.filter((each) => each !== message);
      this.answers.forget(message);
    }
    this.answer(this.conversation.messages.find((each) => each.id === message.parent));
  }

  async answerWithKey(message) {
    try {
      await this.withKey(() => this.api.models());
    } catch (error) {
      if (error.kind === 'key') return;
    }
    this.reconnect();
    this.regenerate(message);
  }

  choose(message) {
    this.conversation.chosen[message.parent] = message.id;
    this.store.save(this.conversation);
    this.showConversation();
  }

  answer(question) {
    return this.fill(addMessage(this.conversation, question.id, 'assistant', ''));
  }

  // Lets the model write a message, or the rest of it.
  async fill(message) {
    const {conversation} = this;
    const done = this.answers.run(conversation, message, this.connected.then(() => this));
    this.showConversation();
    this.transcript.beginAnswer(message);
    await done;
    this.refreshModels();
    if (conversation === this.conversation)
      this.showConversation();
    else
      this.showSidebar();
  }
}

new Page();
