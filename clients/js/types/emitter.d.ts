/**
 * @template {Record<string, any>} Events
 */
export class Emitter<Events extends Record<string, any>> {
    /** @type {Map<keyof Events, Set<(payload: any) => void>>} */
    _handlers: Map<keyof Events, Set<(payload: any) => void>>;
    /**
     * @template {keyof Events} Name
     * @param {Name} name
     * @param {(payload: Events[Name]) => void} handler
     * @returns {() => void} ends it
     */
    on<Name extends keyof Events>(name: Name, handler: (payload: Events[Name]) => void): () => void;
    /**
     * @template {keyof Events} Name
     * @param {Name} name
     * @param {(payload: Events[Name]) => void} handler
     * @returns {() => void}
     */
    once<Name extends keyof Events>(name: Name, handler: (payload: Events[Name]) => void): () => void;
    /**
     * @template {keyof Events} Name
     * @param {Name} name
     * @param {(payload: Events[Name]) => void} handler
     */
    off<Name extends keyof Events>(name: Name, handler: (payload: Events[Name]) => void): void;
    /**
     * @template {keyof Events} Name
     * @param {Name} name
     * @param {Events[Name]} payload
     */
    _emit<Name extends keyof Events>(name: Name, payload: Events[Name]): void;
    /** @param {unknown} error */
    _handlerFailed(error: unknown): void;
}
