package callback

// Reachable is the check of an address.
var Reachable = reachable
