/** @import { AccountExport } from "./types.js" */
/**
 * @typedef {object} AccountHost
 * @property {import("./users.js").Call} call
 * @property {(path: string) => Promise<Blob>} download
 * @property {() => Promise<void>} forget deletes everything stored of the user here
 */
export class Account {
    /** @param {AccountHost} host */
    constructor(host: AccountHost);
    _host: AccountHost;
    /**
     * Begins to collect everything that you may see. Without a password only a moment after signing in.
     * @param {{password?: string}} [proof]
     * @returns {Promise<AccountExport>}
     */
    export({ password }?: {
        password?: string;
    }): Promise<AccountExport>;
    /** How far the export is. @returns {Promise<AccountExport>} */
    exportStatus(): Promise<AccountExport>;
    /** The file of the export when it is done: JSON lines, packed by gzip. @returns {Promise<Blob>} */
    exportFile(): Promise<Blob>;
    /**
     * Closes the account for good, and deletes everything stored of the user here. With `eraseMessages`, its messages are erased for
     * all. Without a password only a moment after signing in.
     * @param {{password?: string, eraseMessages?: boolean}} [proof]
     */
    close({ password, eraseMessages }?: {
        password?: string;
        eraseMessages?: boolean;
    }): Promise<void>;
}
export type AccountHost = {
    call: import("./users.js").Call;
    download: (path: string) => Promise<Blob>;
    /**
     * deletes everything stored of the user here
     */
    forget: () => Promise<void>;
};
import type { AccountExport } from "./types.js";
