// The page of the shop, for customers and for its staff. It knows the shop's own address only: where Nexo is, who is signed in
// and a token for the chat come from the shop's backend.
const $ = (selector) => document.querySelector(selector);
let client = null;
let chat = null; // the conversation that is shown

async function ask(method, path, body) {
  const headers = body ? { "content-type": "application/json" } : {};
  const response = await fetch(path, { method, headers, body: body && JSON.stringify(body) });
  if (!response.ok) throw new Error(await response.text());
  return response.json();
}

async function getToken() {
  const response = await fetch("/chat-token", { method: "POST" });
  if (response.status === 401) return null; // signed out of the shop: the chat ends too
  if (!response.ok) throw new Error("the shop has no token now"); // asked again later
  return response.text();
}

async function open() {
  const session = await ask("GET", "/session");
  $("#sign-in").hidden = session.user !== null;
  $("#shop").hidden = $("#sign-out").hidden = session.user === null;
  if (session.user === null) return;
  const { NexoClient } = await import(`${session.nexo}/sdk/index.js`);
  client = new NexoClient({ url: session.nexo, getToken });
  client.on("state", ({ state, reason }) => ($("#state").textContent = reason ? `${state}: ${reason}` : state));
  if (session.user.staff) {
    client.on("conversations", listCustomers);
    await client.connect();
    listCustomers();
  } else {
    await client.connect();
    show(client.chatWith(session.support), "The shop");
  }
}

function listCustomers() {
  const buttons = client.conversations.map((one) => {
    const button = document.createElement("button");
    button.textContent = one.unread ? `${one.peerId} (${one.unread})` : one.peerId;
    button.onclick = () => show(one, one.peerId);
    return button;
  });
  $("#customers").replaceChildren(...buttons);
  $("#customers").hidden = false;
}

async function show(conversation, title) {
  chat = conversation;
  $("#chat").hidden = false;
  $("#chat h2").textContent = title;
  await chat.loadLatest(50);
  conversation.on("change", () => chat === conversation && draw());
  draw();
}

/** Texts of others are shown as text, never as markup. */
function draw() {
  const line = (message, kind) => {
    const made = document.createElement("li");
    made.textContent = typeof message.content === "string" ? message.content : "…";
    made.className = kind;
    return made;
  };
  const texts = chat.messages.filter((message) => message.msgType < 100); // from 100 on: events, such as recalls
  $("#chat ol").replaceChildren(
    ...texts.map((message) => line(message, message.senderId === client.userId ? "own" : "other")),
    ...chat.pending.map((message) => line(message, "own waiting")),
  );
  $("#chat ol").lastElementChild?.scrollIntoView({ block: "nearest" });
  if (chat.unread && document.hasFocus()) chat.markRead();
}

$("#sign-in").onsubmit = async (event) => {
  event.preventDefault();
  try {
    await ask("POST", "/login", Object.fromEntries(new FormData(event.target)));
    location.reload();
  } catch (error) {
    $("#sign-in [role=alert]").textContent = error.message;
  }
};

$("#sign-out").onclick = async () => {
  await client?.logout().catch(() => {}); // forgets what this browser has stored of the user
  await ask("POST", "/logout");
  location.reload();
};

$("#chat form").onsubmit = (event) => {
  event.preventDefault();
  chat.send(event.target.text.value);
  event.target.reset();
};

await open();
