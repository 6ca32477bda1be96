package blackbox

const sysSetns = 268
