export class Locks {
    /** @param {LockManager | undefined} [manager] */
    constructor(manager?: LockManager | undefined);
    _manager: LockManager;
    /** Whether there may be other tabs. */
    get isShared(): boolean;
    /**
     * Runs `work` while no other tab does.
     * @template T
     * @param {string} name
     * @param {() => Promise<T>} work
     * @returns {Promise<T>}
     */
    run<T>(name: string, work: () => Promise<T>): Promise<T>;
    /**
     * Hold it until the function that is given back is called, or the tab is gone.
     * @param {string} name
     * @returns {Promise<() => void>}
     */
    hold(name: string): Promise<() => void>;
    /** The names of all that are held now. @returns {Promise<Set<string | undefined>>} */
    held(): Promise<Set<string | undefined>>;
}
