package blackbox

const sysSetns = 308
