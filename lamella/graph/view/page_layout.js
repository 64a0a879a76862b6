// Layered layout of one graph: boxes are in rows, and values flow from top to bottom.
//
// Every box is in the row below its lowest operand; boxes without operands are directly above their
// first user. An edge over several rows passes through points in the rows between; all users of a
// source share one chain of points. The items of a row are ordered by the positions of their
// neighbours. Then each gets the position nearest to the middle of its neighbours that keeps the
// order and the distances (isotonic regression).
'use strict';

const GAP_X = 16, GAP_Y = 34, POINT = 8;

// boxes: [{w, h, inputs: [index of an earlier box]}] -> {w, h, boxes: [{x, y}] upper left corners,
// edges: [{from, to, slot, d}], where d is an SVG path}.
function layered(boxes) {
  const count = boxes.length;
  const row = new Array(count).fill(0);
  const users = boxes.map(() => []);
  boxes.forEach((box, i) => {
    for (const input of box.inputs) {
      row[i] = Math.max(row[i], row[input] + 1);
      users[input].push(i);
    }
  });
  for (let i = count - 1; i >= 0; --i) {
    if (boxes[i].inputs.length === 0 && users[i].length > 0) {
      row[i] = Math.min(...users[i].map((u) => row[u])) - 1;
    }
  }
  // Items are the boxes, then the points of edges.
  const items = boxes.map((box, i) => ({ w: box.w, row: row[i], up: [], down: [], x: 0 }));
  const chains = boxes.map((box, i) => {
    const last = Math.max(row[i], ...users[i].map((u) => row[u] - 1));
    const chain = [i];
    for (let r = row[i] + 1; r <= last; ++r) {
      const point = items.length;
      items.push({ w: POINT, row: r, up: [], down: [], x: 0, point: true });
      link(items, chain[chain.length - 1], point);
      chain.push(point);
    }
    return chain;
  });
  const above = (from, to) => chains[from][row[to] - 1 - row[from]];
  boxes.forEach((box, i) => {
    for (const input of new Set(box.inputs)) link(items, above(input, i), i);
  });
  const rows = [];
  for (let i = 0; i < items.length; ++i) (rows[items[i].row] ||= []).push(i);
  for (let r = 0; r < rows.length; ++r) rows[r] ||= [];
  order(items, rows);
  spread(items, rows);

  // Rows are from top to bottom; each is as high as its highest box.
  const top = [], height = [];
  let y = 0;
  rows.forEach((members, r) => {
    top[r] = y;
    height[r] = Math.max(POINT, ...members.map((i) => (i < count ? boxes[i].h : 0)));
    y += height[r] + GAP_Y;
  });
  let left = Infinity, right = 0;
  for (const item of items) left = Math.min(left, item.x - item.w / 2);
  if (items.length === 0) left = 0;
  for (const item of items) {
    item.x -= left;
    right = Math.max(right, item.x + item.w / 2);
  }
  const placed = boxes.map((box, i) => ({
    x: items[i].x - box.w / 2,
    y: top[row[i]] + (height[row[i]] - box.h) / 2,
  }));
  const edges = [];
  boxes.forEach((box, to) => {
    // Edges enter a box in the order of their sources, so that they do not cross in front of it.
    const entries = box.inputs.map((from, slot) => ({ from, slot, x: items[above(from, to)].x }));
    entries.sort((a, b) => a.x - b.x || a.slot - b.slot);
    entries.forEach(({ from, slot }, k) => {
      const enter = placed[to].x + (box.w * (k + 1)) / (entries.length + 1);
      let at = [items[from].x, placed[from].y + boxes[from].h];
      let d = `M${at[0].toFixed(1)} ${at[1].toFixed(1)}`;
      const go = (x, r, end) => {
        const y0 = top[r - 1] + height[r - 1], y1 = top[r], half = GAP_Y / 2;
        d += `V${y0}C${at[0].toFixed(1)} ${y0 + half} ${x.toFixed(1)} ${y1 - half} ${x.toFixed(1)} ${y1}`;
        at = [x, end];
        d += `V${end.toFixed(1)}`;
      };
      for (let r = row[from] + 1; r < row[to]; ++r) go(items[chains[from][r - row[from]]].x, r, top[r]);
      go(enter, row[to], placed[to].y);
      edges.push({ from, to, slot, d });
    });
  });
  return { w: right, h: Math.max(0, y - GAP_Y), boxes: placed, edges };
}

function link(items, from, to) {
  items[from].down.push(to);
  items[to].up.push(from);
}

// Orders rows by the mean position of their items' neighbours, alternating between down and up.
function order(items, rows) {
  const place = new Array(items.length).fill(0);
  const number = (members) => members.forEach((i, k) => { place[i] = k / Math.max(1, members.length - 1); });
  rows.forEach(number);
  for (let sweep = 0; sweep < 8; ++sweep) {
    const down = sweep % 2 === 0;
    for (let n = 0; n < rows.length; ++n) {
      const members = rows[down ? n : rows.length - 1 - n];
      const wish = new Map();
      for (const i of members) {
        const near = down ? items[i].up : items[i].down;
        wish.set(i, near.length === 0 ? place[i] : near.reduce((sum, j) => sum + place[j], 0) / near.length);
      }
      members.sort((a, b) => wish.get(a) - wish.get(b) || place[a] - place[b]);
      number(members);
    }
  }
}

function spread(items, rows) {
  for (const members of rows) {
    let x = 0;
    for (const i of members) {
      items[i].x = x + items[i].w / 2;
      x += items[i].w + GAP_X;
    }
  }
  for (let sweep = 0; sweep < 8; ++sweep) {
    const down = sweep % 2 === 0;
    for (let n = 1; n < rows.length; ++n) {
      const members = rows[down ? n : rows.length - 1 - n];
      settle(items, members, members.map((i) => {
        const near = down ? items[i].up : items[i].down;
        if (near.length === 0) return items[i].x;
        return near.reduce((sum, j) => sum + items[j].x, 0) / near.length;
      }));
    }
  }
}

// Positions nearest to the wishes by least squares, in the given order and without overlap.
function settle(items, members, wishes) {
  const blocks = [];  // {sum, weight, from}: runs of items at minimal distances
  let offset = 0;
  const offsets = members.map((i, k) => {
    if (k > 0) offset += (items[members[k - 1]].w + items[i].w) / 2 + GAP_X;
    return offset;
  });
  members.forEach((i, k) => {
    const weight = items[i].point ? 3 : 1;  // prefers straight long edges over centred boxes
    let block = { sum: (wishes[k] - offsets[k]) * weight, weight, from: k };
    while (blocks.length > 0) {
      const before = blocks[blocks.length - 1];
      if (before.sum / before.weight <= block.sum / block.weight) break;
      blocks.pop();
      block = { sum: before.sum + block.sum, weight: before.weight + block.weight, from: before.from };
    }
    blocks.push(block);
  });
  blocks.forEach((block, b) => {
    const end = b + 1 < blocks.length ? blocks[b + 1].from : members.length;
    for (let k = block.from; k < end; ++k) items[members[k]].x = block.sum / block.weight + offsets[k];
  });
}

if (typeof module !== 'undefined') module.exports = { layered };
