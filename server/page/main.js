// Connects the parts of the page.
import {Answer} from './answer.js';
import {Api} from './api.js';
import {Composer} from './composer.js';
import {addMessage, newConversation, pathOf, titleFrom} from './conversation.js';
import {askKey, askName, confirmDeleteAll} from './dialogs.js';
import {make} from './elements.js';
import {FiguresView} from './figures_view.js';
import {Layout} from './layout.js';
import {ModelPicker} from './model_picker.js';
import {SettingsView} from './settings_view.js';
import {fillIcons, Notice, Sidebar} from './sidebar.js';
import {Store} from './store.js';
import {Transcript} from './transcript.js';

const WAITING_TICK_MS = 1000;
const element = (id) => document.getElementById(id);

// Stands in for the browser's storage where it is not allowed.
class NoStorage {
  get length() {
    return 0;
  }
  key() {
    return null;
  }
  getItem() {
    return null;
  }
  setItem() {
    throw new Error('no storage');
  }
  removeItem() {}
}

function openStorage(name) {
  try {
    return window[name];
  } catch {
    return new NoStorage();
  }
}

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
    this.answers = new Map();  // Of messages that arrive, or failed, by the message's id.
    this.model = '';
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
          regenerate: (message) => this.regenerate(message),
          choose: (message) => this.choose(message),
          askKey: (message) => this.answerWithKey(message),
          mayAnswer: () => !this.running()
        });
    this.sidebar = new Sidebar(element('conversations'), {
      open: (id) => this.openConversation(this.store.get(id)),
      rename: (id) => this.rename(id),
      remove: (id) => this.remove(id),
      exportOne: (id) => this.exportFile([this.store.get(id)])
    });
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
    this.composer = new Composer(
        {form: element('composer'), area: element('message'), button: element('send')}, {
          send: (text) => this.send(text),
          stop: () => this.stop(),
          editLast: () => this.transcript.editLast()
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
      for (const answer of this.answers.values()) answer.leave();
    });
    setInterval(() => {
      const answer = this.running();
      if (answer && !answer.message.content) this.transcript.updateAnswer(answer);
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

  // The model that answers next, as the list of models has it.
  showModel(model) {
    this.model = String(model?.id ?? '');
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

  openNew() {
    this.openConversation(newConversation(this.store.settings));
    element('message').focus();
  }

  showConversation() {
    const {conversation} = this;
    const path = pathOf(conversation);
    this.transcript.show(conversation, (message) => this.answers.get(message.id));
    element('welcome').hidden = path.length > 0;
    element('title').textContent = conversation.title || 'New conversation';
    document.title = conversation.title ? `${conversation.title} – Cria` : 'Cria';
    this.figures.showFigures(path.findLast((message) => message.figures)?.figures);
    this.composer.setRunning(Boolean(this.running()));
    this.showSidebar();
  }

  showSidebar() {
    const running = new Set([...this.answers.values()]
                                .filter((answer) => answer.isRunning)
                                .map((answer) => answer.conversation.id));
    const list = this.store.list();
    this.sidebar.show(list, this.conversation.id, running);
    for (const id of ['export', 'delete-all']) element(id).hidden = !list.length;
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
    this.stopAnswersOf(id);
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
      this.stopAnswersOf(id);
      this.store.remove(id);
    }
    this.openNew();
  }

  stopAnswersOf(id) {
    for (const [messageId, answer] of this.answers) {
      if (answer.conversation.id !== id) continue;
      answer.stop();
      this.answers.delete(messageId);
    }
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
    return [...this.answers.values()].find(
        (answer) => answer.isRunning && answer.conversation.id === this.conversation.id);
  }

  stop() {
    this.running()?.stop();
  }

  send(text) {
    const parent = pathOf(this.conversation).at(-1)?.id ?? '';
    this.answer(addMessage(this.conversation, parent, 'user', text));
  }

  edit(message, text) {
    if (this.running()) return;
    this.answer(addMessage(this.conversation, message.parent, 'user', text));
  }

  regenerate(message) {
    if (this.running()) return;
    // Another answer stands beside this one, unless it is empty.
    if (!message.content && !message.reasoning) {
      this.conversation.messages = this.conversation.messages.filter((each) => each !== message);
      this.answers.delete(message.id);
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

  async answer(question) {
    const {conversation} = this;
    const message = addMessage(conversation, question.id, 'assistant', '');
    const answer = new Answer(conversation, message, {
      onChange: (changed) => this.scheduleUpdate(changed),
      onSave: () => this.store.get(conversation.id) && this.store.save(conversation),
      onToken: (time) => this.figures.graph.token(time),
    });
    this.answers.set(message.id, answer);
    this.store.save(conversation);
    this.figures.graph.begin();
    const done = answer.run(this.api, this.connected.then(() => this));
    this.showConversation();
    this.transcript.beginAnswer();
    await done;
    this.figures.graph.end(message.figures?.tokens_per_second);
    if (!answer.error) this.answers.delete(message.id);
    if (conversation === this.conversation)
      this.showConversation();
    else
      this.showSidebar();
  }

  // Draws once for all that arrived since the last picture.
  scheduleUpdate(answer) {
    if (!answer.isRunning) {
      this.transcript.updateAnswer(answer);
      return;
    }
    if (answer.isScheduled) return;
    answer.isScheduled = true;
    requestAnimationFrame(() => {
      answer.isScheduled = false;
      if (answer.isRunning) this.transcript.updateAnswer(answer);
    });
  }
}

new Page();
