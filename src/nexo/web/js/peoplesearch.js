/** Finding people. */

/**
 * People by the beginning of their id or name; by the exact id where looking around is switched off.
 * @param {any} model @param {string} q
 */
export async function findPeople(model, q) {
  let found = [];
  if (model.settings.user_search) found = await model.client.users.search(q);
  else if (/^[A-Za-z0-9._@-]{1,64}$/.test(q)) {
    try {
      found = [await model.client.users.info(q)];
    } catch (error) {
      if (error?.reason !== "user_not_found") throw error;
    }
  }
  for (const user of found) model.people.learn(user);
  return found;
}
