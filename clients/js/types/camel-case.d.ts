/**
 * @param {any} value
 * @returns {any}
 */
export function camel(value: any): any;
/**
 * The parameters of a call; undefined ones are left out.
 * @param {Record<string, any>} params
 * @returns {Record<string, any>}
 */
export function snake(params: Record<string, any>): Record<string, any>;
