export class Http {
    /**
     * @param {string} url
     * @param {typeof globalThis.fetch} fetch
     */
    constructor(url: string, fetch: typeof globalThis.fetch);
    _url: string;
    _fetch: typeof fetch;
    get socketUrl(): string;
    /**
     * @param {string} method
     * @param {string} path
     * @param {Record<string, any>} params names of the API
     * @param {string} [token]
     * @returns {Promise<any>} what is in `data`
     */
    call(method: string, path: string, params: Record<string, any>, token?: string): Promise<any>;
    /** @param {string} url @param {RequestInit} init */
    _request(url: string, init: RequestInit): Promise<{
        status: number;
        reply: any;
    }>;
}
