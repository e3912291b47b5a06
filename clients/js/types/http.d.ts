export class Http {
    /**
     * @param {string} url
     * @param {typeof globalThis.fetch} fetch
     * @param {number} [timeoutMs]
     */
    constructor(url: string, fetch: typeof globalThis.fetch, timeoutMs?: number);
    _url: string;
    _fetch: typeof fetch;
    _timeoutMs: number;
    get socketUrl(): string;
    /**
     * @param {string} method
     * @param {string} path
     * @param {Record<string, any>} params names of the API
     * @param {string} [token]
     * @param {object} [how]
     * @param {string} [how.userId] the user for whom a backend acts
     * @param {number} [how.waitS] how long the server may take longer than usual
     * @returns {Promise<any>} what is in `data`
     */
    call(method: string, path: string, params: Record<string, any>, token?: string, { userId, waitS }?: {
        userId?: string | undefined;
        waitS?: number | undefined;
    }): Promise<any>;
    get url(): string;
    /**
     * A request that is not JSON.
     * @param {string} method
     * @param {string} path
     * @param {Record<string, string>} headers
     * @param {Blob} [body]
     * @returns {Promise<Headers>} of the answer
     */
    callRaw(method: string, path: string, headers: Record<string, string>, body?: Blob): Promise<Headers>;
    /**
     * The content of an answer that is not JSON.
     * @param {string} path
     * @param {Record<string, string>} headers
     * @returns {Promise<Blob>}
     */
    download(path: string, headers: Record<string, string>): Promise<Blob>;
    /** @param {string} url @param {RequestInit} init @param {number} timeoutMs @param {boolean} [isFile] */
    _request(url: string, init: RequestInit, timeoutMs: number, isFile?: boolean): Promise<{
        status: number;
        reply: null;
        headers: Headers;
        content: Blob;
    } | {
        status: number;
        reply: any;
        headers: Headers;
        content?: undefined;
    }>;
}
