/** Signing in and creating an account. */

import { button, fill, h, icon, mark } from "../dom.js";
import { busyWhile } from "../components/dialog.js";
import { field } from "../components/field.js";
import { chooseLanguage, currentLanguage, rich, t } from "../i18n.js";
import { errorText } from "../wording.js";

const RESET = /^#\/reset(?:\/(.+))?$/;
const USER_ID = /^[A-Za-z0-9._@-]{1,64}$/;

/**
 * @param {{client: any, settings: any, notice?: string, signedIn: () => void}} door
 * @returns {HTMLElement}
 */
export function doorView(door) {
  const element = h("div", { class: "door" });
  const draw = () => {
    const creating = location.hash === "#/register";
    const resetting = RESET.exec(location.hash);
    document.title = `${t(resetting ? "new_password_title" : creating ? "create_account" : "sign_in")} · Nexo`;
    const other = currentLanguage() === "zh" ? ["en", "English"] : ["zh", "中文"];
    const switchLanguage = () => {
      chooseLanguage(/** @type {any} */ (other[0]));
      draw();
    };
    fill(
      element,
      h(
        "main",
        null,
        h("div", { class: "brand" }, mark(), "Nexo"),
        resetting ? resetForm(door, decodeURIComponent(resetting[1] ?? "")) : creating ? registerForm(door) : signInForm(door),
        h(
          "div",
          { class: "foot" },
          h("span", null, `Nexo ${door.settings.version}`),
          h("button", { type: "button", class: "link", lang: other[0], onclick: switchLanguage }, other[1]),
        ),
      ),
      h("aside", null, thread()),
    );
  };
  const onhash = () => {
    if (element.isConnected) draw();
    else window.removeEventListener("hashchange", onhash);
  };
  window.addEventListener("hashchange", onhash);
  draw();
  return element;
}

function thread() {
  const line = (seq, key) => h("div", { class: "ln" }, h("span", { class: "sq" }, seq), h("span", { class: "b" }, t(key)));
  const own = (key) => h("div", { class: "ln r" }, h("span", { class: "sq" }, icon("read", "tick read", t("state_read"))), h("span", { class: "b" }, t(key)));
  return h(
    "div",
    { class: "thread" },
    line("#481", "door_line_1"),
    own("door_line_2"),
    own("door_line_3"),
    line("#484", "door_line_4"),
    h("h2", null, t("door_title")),
    h("p", null, t("door_text")),
  );
}

function formOf(title, about, fields, action, under, submit) {
  const go = button(action, { type: "submit", class: "primary block" });
  const problem = h("p", { class: "formerr", role: "alert" });
  const form = h(
    "form",
    { novalidate: true, "aria-labelledby": "door-title" },
    h("h1", { id: "door-title" }, title),
    h("p", null, about),
    fields.map((one) => one.element),
    problem,
    go,
    h("p", { class: "under" }, under),
  );
  form.addEventListener("submit", (event) => {
    event.preventDefault();
    fill(problem);
    busyWhile(go, async () => {
      const failure = await submit();
      if (failure) fill(problem, icon("alert", "s"), h("span", null, failure));
      fields.find((one) => one.input.getAttribute("aria-invalid") === "true")?.input.focus();
    });
  });
  queueMicrotask(() => (fields.find((one) => !one.input.value) ?? fields[0]).input.focus());
  return form;
}

function signInForm({ client, signedIn, notice }) {
  const user = field({
    label: t("user_id"),
    attributes: { name: "user_id", autocomplete: "username", autocapitalize: "none", spellcheck: "false" },
  });
  const password = field({ label: t("password"), type: "password", attributes: { name: "password", autocomplete: "current-password" } });
  const submit = async () => {
    if (!user.input.value.trim()) return void user.setError(t("user_id_rule"));
    if (!password.input.value) return void password.setError(t("password_missing"));
    try {
      await client.login({ userId: user.input.value.trim(), password: password.input.value });
    } catch (error) {
      if (error?.reason === "bad_user_id" || error?.reason === "bad_password") return t("err_invalid_credentials");
      return errorText(error);
    }
    signedIn();
    return "";
  };
  const under = [`${t("new_here")} `, h("a", { class: "link", href: "#/register" }, t("create_account"))];
  under.push(h("br"), h("a", { class: "link", href: "#/reset" }, t("forgot_password")));
  const about = notice ? [h("span", { class: "notice" }, notice)] : [`${t("sign_in_to")} `, h("strong", null, location.host)];
  return formOf(t("welcome_back"), about, [user, password], t("sign_in"), under, submit);
}

async function resetPassword(code, password) {
  const headers = { "content-type": "application/json" };
  const answer = await fetch("/auth/reset", { method: "POST", headers, body: JSON.stringify({ code, new_password: password }) }).catch(() => null);
  const body = await answer?.json().catch(() => null);
  if (body?.err_code !== 0) throw Object.assign(new Error(), { reason: body ? body.err_msg : "network" });
}

/** By a code that an administrator has made: it works once. */
function resetForm(door, given) {
  const code = field({ label: t("reset_code"), help: t("reset_code_help"), value: given, attributes: { name: "code", autocomplete: "one-time-code", autocapitalize: "none", spellcheck: "false" } });
  const shortest = door.settings.min_password_length;
  const password = field({ label: t("new_password"), type: "password", help: t("password_help", { n: shortest }), attributes: { name: "password", autocomplete: "new-password", maxlength: 128 } });
  const submit = async () => {
    if (!code.input.value.trim()) return void code.setError(t("reset_code_wrong"));
    if ([...password.input.value].length < shortest) return void password.setError(t("password_help", { n: shortest }));
    try {
      await resetPassword(code.input.value.trim(), password.input.value);
    } catch (error) {
      if (error?.reason === "code_invalid") return void code.setError(t("reset_code_wrong"));
      if (error?.reason === "bad_password") return void password.setError(t("password_help", { n: shortest }));
      return errorText(error);
    }
    door.notice = t("reset_done");
    history.replaceState(null, "", "#/"); // the code is of no use any more, and is not left in the address
    window.dispatchEvent(new HashChangeEvent("hashchange"));
    return "";
  };
  const under = [h("a", { class: "link", href: "#/" }, t("back_to_sign_in"))];
  return formOf(t("new_password_title"), [t("reset_about")], [code, password], t("set_password"), under, submit);
}

function registerForm({ client, settings, signedIn }) {
  const name = field({ label: t("name"), help: t("name_help"), attributes: { name: "nickname", autocomplete: "name", maxlength: 128 } });
  const user = field({
    label: t("user_id"),
    help: t("user_id_rule"),
    attributes: { name: "user_id", autocomplete: "username", autocapitalize: "none", spellcheck: "false", maxlength: 64 },
  });
  const shortest = settings.min_password_length;
  const password = field({
    label: t("password"),
    type: "password",
    help: t("password_help", { n: shortest }),
    attributes: { name: "password", autocomplete: "new-password", maxlength: 128 },
  });
  const code = field({ label: t("invite_code"), help: t("invite_code_help"), attributes: { name: "code", autocomplete: "off", maxlength: 64 } });
  const byInvite = settings.registration === "invite";
  const submit = async () => {
    const given = { userId: user.input.value.trim(), password: password.input.value, nickname: name.input.value.trim() };
    if (byInvite) given.code = code.input.value.trim();
    if (!USER_ID.test(given.userId)) return void user.setError(t("user_id_rule"));
    if ([...given.password].length < shortest) return void password.setError(t("password_help", { n: shortest }));
    try {
      await client.register(given);
    } catch (error) {
      if (byInvite && error?.reason === "registration_closed") return void code.setError(t("invite_code_wrong"));
      if (error?.reason === "user_exists") return void user.setError(t("err_user_exists"));
      if (error?.reason === "bad_user_id") return void user.setError(t("user_id_rule"));
      if (error?.reason === "bad_password") return void password.setError(t("password_help", { n: shortest }));
      return errorText(error);
    }
    try {
      await client.login(given);
    } catch (error) {
      location.hash = "#/"; // the account exists: from here on it is signing in
      return errorText(error);
    }
    location.hash = "#/";
    signedIn();
    return "";
  };
  const under = [`${t("have_one")} `, h("a", { class: "link", href: "#/" }, t("sign_in"))];
  const about = rich("on_host", { host: h("strong", null, location.host) });
  return formOf(t("create_your_account"), about, [name, user, password, ...(byInvite ? [code] : [])], t("create_account"), under, submit);
}
