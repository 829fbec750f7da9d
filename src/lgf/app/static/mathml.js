// Mathematics from a tree of tags and texts. Only the tags below are made, and none has attributes of the server's.

const SPACE = "http://www.w3.org/1998/Math/MathML";
const TAGS = new Set(["math", "mrow", "mi", "mn", "mo", "mtext", "msup", "msub", "mfrac", "msqrt", "mtable", "mtr", "mtd"]);
const TIMES = "\u2062";
const PRIMES = ["′", "″", "‴", "⁗"];

export function math(tree, block = false) {
  const element = node(tree);
  if (block) element.setAttribute("display", "block");
  return element;
}

function node(tree) {
  if (!Array.isArray(tree) || !TAGS.has(tree[0])) return document.createTextNode(String(tree));
  const [tag, ...children] = tree;
  const element = document.createElementNS(SPACE, tag);
  for (const child of children) element.append(typeof child === "string" ? child : node(child));
  if (tag === "mo" && children[0] === TIMES) {
    element.setAttribute("lspace", "0.08em");
    element.setAttribute("rspace", "0.08em");
  }
  if (tag === "mo" && PRIMES.includes(children[0])) {
    element.setAttribute("lspace", "0");
    element.setAttribute("rspace", "0");
  }
  return element;
}
