/** Telling a person that something did not work. */

import { toast } from "./components/toast.js";
import { errorText } from "./wording.js";

/** @param {any} error */
export function tellFailure(error) {
  toast(errorText(error), { bad: true, detail: error?.reason });
}

/** Runs `work` and shows its failure; returns whether it worked. @param {() => Promise<any>} work @returns {Promise<boolean>} */
export async function trying(work) {
  try {
    await work();
    return true;
  } catch (error) {
    tellFailure(error);
    return false;
  }
}
