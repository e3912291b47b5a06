// The account as a whole: its export, and its end: `client.account`.

import { camel, snake } from "./camel-case.js";

/** @import { AccountExport } from "./types.js" */

/**
 * @typedef {object} AccountHost
 * @property {import("./users.js").Call} call
 * @property {(path: string) => Promise<Blob>} download
 * @property {() => Promise<void>} forget deletes everything stored of the user here
 */

export class Account {
  /** @param {AccountHost} host */
  constructor(host) {
    this._host = host;
  }

  /**
   * Begins to collect everything that you may see. Without a password only a moment after signing in.
   * @param {{password?: string}} [proof]
   * @returns {Promise<AccountExport>}
   */
  async export({ password } = {}) {
    return camel(await this._host.call("POST", "/user/export", snake({ password })));
  }

  /** How far the export is. @returns {Promise<AccountExport>} */
  async exportStatus() {
    return camel(await this._host.call("GET", "/user/export", {}));
  }

  /** The file of the export when it is done: JSON lines, packed by gzip. @returns {Promise<Blob>} */
  async exportFile() {
    return this._host.download("/user/export/file");
  }

  /**
   * Closes the account for good, and deletes everything stored of the user here. With `eraseMessages`, its messages are erased for
   * all. Without a password only a moment after signing in.
   * @param {{password?: string, eraseMessages?: boolean}} [proof]
   */
  async close({ password, eraseMessages } = {}) {
    await this._host.call("DELETE", "/user", snake({ password, eraseMessages }));
    await this._host.forget();
  }
}
