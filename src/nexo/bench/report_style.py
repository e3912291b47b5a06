"""How the report looks, light and dark."""

STYLE = """
:root{--bg:#f6f7f9;--card:#fff;--ink:#1b2430;--soft:#66707f;--line:#e4e8ee;--accent:#3457d5;--good:#12805c;
--good-bg:#e8f6f0;--bad:#b3261e;--bad-bg:#fdecea;--p50:#3fa58a;--p95:#3457d5;--p99:#d97a0b;--p999:#c2304c}
@media(prefers-color-scheme:dark){:root{--bg:#12161c;--card:#1a2029;--ink:#e6eaf0;--soft:#93a0b1;--line:#2b333f;
--accent:#8aa4ff;--good:#59c9a0;--good-bg:#15302a;--bad:#ff8a80;--bad-bg:#3a1d1c;--p50:#59c9a0;--p95:#8aa4ff;
--p99:#f0a94a;--p999:#ff7f98}}
*{box-sizing:border-box}
body{margin:0;background:var(--bg);color:var(--ink);font:15px/1.5 system-ui,-apple-system,"Segoe UI",sans-serif}
main{max-width:1180px;margin:0 auto;padding:40px 24px 64px}
header{margin-bottom:24px}
.brand{margin:0;color:var(--accent);font-weight:700;letter-spacing:.02em}
.brand span{color:var(--soft);font-weight:500}
h1{margin:2px 0 4px;font-size:34px;line-height:1.15;letter-spacing:-.02em}
.sub{margin:0;color:var(--soft)}
h2{margin:0 0 14px;font-size:18px;letter-spacing:-.01em}
section{background:var(--card);border:1px solid var(--line);border-radius:14px;padding:22px 24px;margin-top:18px}
.verdict strong{font-size:18px}
.verdict p{margin:2px 0 0}
.verdict ul{margin:8px 0 0;padding-left:20px}
.verdict .notes,.verdict .samples{color:var(--soft);font-size:14px}
.verdict .samples{font-family:ui-monospace,monospace;font-size:12px}
.ok{background:var(--good-bg);border-color:transparent}.ok strong{color:var(--good)}
.bad{background:var(--bad-bg);border-color:transparent}.bad strong{color:var(--bad)}
.tiles{display:grid;grid-template-columns:repeat(auto-fit,minmax(160px,1fr));gap:12px;padding:0;background:none;border:0}
.tile{background:var(--card);border:1px solid var(--line);border-radius:14px;padding:16px 18px}
.tile b{display:block;font-size:24px;white-space:nowrap;line-height:1.2;
letter-spacing:-.02em;font-variant-numeric:tabular-nums}
.tile small{font-size:14px;color:var(--soft);font-weight:500}
.tile span{color:var(--soft);font-size:13px}
table{border-collapse:collapse;font-variant-numeric:tabular-nums}
table.wide{width:100%}
th{font-weight:500;color:var(--soft);font-size:13px;text-align:right}
td{text-align:right}
th:first-child,td:first-child{text-align:left}
th,td{padding:8px 14px;border-bottom:1px solid var(--line)}
th:first-child,td:first-child{padding-left:0}
tr:last-child td,tr:last-child th{border-bottom:0}
.help{display:block;color:var(--soft);font-size:12px}
.held td:last-child{color:var(--good)}.broke td:last-child{color:var(--bad)}
.facts th,.facts td{text-align:left;border:0;padding:3px 18px 3px 0}
.figures{display:grid;grid-template-columns:repeat(auto-fit,minmax(min(100%,500px),1fr));gap:22px}
figure{margin:0}
figcaption{display:flex;justify-content:space-between;flex-wrap:wrap;gap:4px 12px;font-weight:600;font-size:14px;
margin-bottom:4px}
.legend{display:flex;gap:14px;font-weight:400;color:var(--soft);font-size:12px}
.legend i{display:inline-block;width:14px;height:3px;border-radius:2px;margin-right:5px;vertical-align:middle;
background:var(--tone)}
.plot{width:100%;height:auto;display:block}
.grid{stroke:var(--line);stroke-width:1}
.tick,.unit{fill:var(--soft);font-size:11px}
.warmup{fill:var(--line);opacity:.45}
.line{fill:none;stroke:var(--tone);stroke-width:2;stroke-linejoin:round;stroke-linecap:round}
.bar{fill:var(--accent);opacity:.85}
.p50,.saved{--tone:var(--p50)}.p95,.received{--tone:var(--p95)}.p99{--tone:var(--p99)}.p999{--tone:var(--p999)}
.sent{--tone:var(--soft)}.answered{--tone:var(--accent)}
.ledger{display:grid;grid-template-columns:repeat(auto-fill,minmax(230px,1fr));gap:4px 28px}
.ledger div{display:flex;justify-content:space-between;border-bottom:1px solid var(--line);padding:5px 0}
.ledger span{color:var(--soft)}
.ledger b{font-weight:600;font-variant-numeric:tabular-nums}
@media(max-width:600px){main{padding:24px 14px}section{padding:16px}th,td{padding:6px 6px}h1{font-size:28px}}
@media print{body{background:#fff}section{break-inside:avoid}}
""".replace("\n", "")
