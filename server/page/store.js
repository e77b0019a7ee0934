// Keeps conversations in the browser, and reads and writes them as a file.
import {defaultSettings, newId, readConversation, readSettings} from './conversation.js';

const PREFIX = 'cria.conversation.';
const SETTINGS = 'cria.settings';
const FORMAT = 'cria-conversations';

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

export function openStorage(name) {
  try {
    return window[name];
  } catch {
    return new NoStorage();
  }
}

export class Store {
  // `onFull` is called if the browser has no space for a conversation.
  constructor(storage, onFull) {
    this.storage = storage;
    this.onFull = onFull;
    this.conversations = new Map();
    for (let i = 0; i < storage.length; ++i) {
      const key = storage.key(i);
      if (key.startsWith(PREFIX)) this.readKey(key);
    }
  }

  // Reads again what another tab wrote. False if that was nothing of ours.
  readKey(key) {
    if (!key?.startsWith(PREFIX)) return false;
    const id = key.slice(PREFIX.length);
    try {
      this.conversations.set(id, {...readConversation(JSON.parse(this.storage.getItem(key))), id});
    } catch {
      // It is left in the storage, for a later version may be able to read it.
      this.conversations.delete(id);
    }
    return true;
  }

  // The newest first.
  list() {
    return [...this.conversations.values()].sort((a, b) => b.updated - a.updated);
  }

  get(id) {
    return this.conversations.get(id);
  }

  save(conversation) {
    this.conversations.set(conversation.id, conversation);
    try {
      this.storage.setItem(PREFIX + conversation.id, JSON.stringify(conversation));
      return true;
    } catch {
      this.onFull();
      return false;
    }
  }

  remove(id) {
    this.conversations.delete(id);
    this.storage.removeItem(PREFIX + id);
  }

  // With which a new conversation begins: those that were set last.
  get settings() {
    try {
      return readSettings(JSON.parse(this.storage.getItem(SETTINGS)));
    } catch {
      return defaultSettings();
    }
  }

  set settings(settings) {
    try {
      this.storage.setItem(SETTINGS, JSON.stringify(settings));
    } catch {
      this.onFull();
    }
  }

  exportText(conversations = this.list()) {
    return JSON.stringify({format: FORMAT, version: 1, conversations}, null, 1);
  }

  // Adds the conversations of a file that exportText wrote, all or none, beside those that are
  // here. Returns how many. Throws an Error with a sentence.
  importText(text) {
    let file;
    try {
      file = JSON.parse(text);
    } catch {
      throw new Error('The file is not JSON. Choose one that this page exported.');
    }
    if (file?.format !== FORMAT || !Array.isArray(file.conversations)) {
      throw new Error('The file has no conversations of this page. Choose one that it exported.');
    }
    if (file.version !== 1) {
      throw new Error(
          'The file was written by a newer version of this page. Update cria-serve first.');
    }
    const added = [];
    for (const [index, value] of file.conversations.entries()) {
      try {
        added.push({...readConversation(value, `conversation ${index + 1}`), id: newId()});
      } catch (error) {
        throw new Error(`Nothing was imported: ${error.message}.`);
      }
    }
    for (const conversation of added) {
      if (!this.save(conversation)) {
        for (const each of added) this.remove(each.id);
        throw new Error(
            'Nothing was imported: the browser has no space for it. Delete some conversations ' +
            'first.');
      }
    }
    return added.length;
  }
}
