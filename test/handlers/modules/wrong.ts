export default { "wrong.kind": 7 };
