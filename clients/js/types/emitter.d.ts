/**
 * Events in the order in which they happened, for `for await`. When the server has ended the session, the error with its reason
 * is thrown once, after the events that were kept; `slow_consumer` when there were more of them than are kept.
 * @template Item
 */
export class EventStream<Item> {
    /** @param {(stream: EventStream<Item>) => void} forget called at its end */
    constructor(forget: (stream: EventStream<Item>) => void);
    _forget: (stream: EventStream<Item>) => void;
    /** @type {Item[]} */
    _waiting: Item[];
    /** @type {(() => void)[]} */
    _readers: (() => void)[];
    /** @type {NexoError | null} */
    _error: NexoError | null;
    isOver: boolean;
    /** @param {Item} item */
    put(item: Item): void;
    /** Ends it after the events that it has; `error` is thrown then. @param {NexoError | null} [error] */
    end(error?: NexoError | null): void;
    /** Removes what was not consumed. @returns {Item[]} */
    takeWaiting(): Item[];
    /** @returns {Promise<IteratorResult<Item, undefined>>} */
    next(): Promise<IteratorResult<Item, undefined>>;
    /** @returns {Promise<IteratorResult<Item, undefined>>} */
    return(): Promise<IteratorResult<Item, undefined>>;
    [Symbol.asyncIterator](): this;
}
/**
 * @template {Record<string, any>} Events
 */
export class Emitter<Events extends Record<string, any>> {
    /** @param {readonly (keyof Events & string)[]} names of all events */
    constructor(names: readonly (keyof Events & string)[]);
    _names: Set<keyof Events & string>;
    /** @type {Map<keyof Events, Set<(payload: any) => void>>} */
    _handlers: Map<keyof Events, Set<(payload: any) => void>>;
    /** @type {Set<EventStream<any>>} */
    _streams: Set<EventStream<any>>;
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
     * An iterator over events from now on.
     * @template {keyof Events} Name
     * @param {readonly Name[]} names
     * @param {(name: Name, payload: Events[Name]) => any} wrap
     */
    _stream<Name extends keyof Events>(names: readonly Name[], wrap: (name: Name, payload: Events[Name]) => any): EventStream<any>;
    /** Ends all iterators, after the events that they have. @param {NexoError | null} [error] */
    _endStreams(error?: NexoError | null): void;
    /**
     * @template {keyof Events} Name
     * @param {Name} name
     * @param {Events[Name]} payload
     */
    _emit<Name extends keyof Events>(name: Name, payload: Events[Name]): void;
    /** @param {unknown} error */
    _handlerFailed(error: unknown): void;
}
import { NexoError } from "./errors.js";
