// Package address validates withdrawal addresses (decisions D-WAD-05, D-WAD-06): the general form of every address, and
// per network a rule that rejects typing errors and addresses that cannot have an owner.
//
// The one idea: a Rule is a total function of the text alone. If the network has a checksum, it is computed and not
// only matched, because a withdrawal to a mistyped address cannot be reversed. The decoding libraries are hidden behind
// this package.
//
// Start reading at Rules, then families.go for the networks.
package address

import (
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
)

var (
	form        = regexp.MustCompile(`^[A-Za-z0-9:_.-]{10,128}$`)
	hexadecimal = regexp.MustCompile(`^0x[0-9A-Fa-f]+$`)
)

// WellFormed reports whether a trimmed text has the form of an address of any network.
func WellFormed(address string) bool { return form.MatchString(address) }

// Key returns the form of an address that the address books keep unique in the database: a hexadecimal address is
// case-insensitive on every network; any other address is compared exactly. Canonical decides whether two are the same.
func Key(address string) string {
	if hexadecimal.MatchString(address) {
		return strings.ToLower(address)
	}
	return address
}

// Rule reports whether a well-formed address is valid on its network.
type Rule func(address string) bool

// families are the built-in rules by their name in the configuration.
var families = map[string]Rule{"bitcoin": bitcoin, "evm": evm, "solana": solana, "tron": tron, "xrp": xrp}

// Families lists the names of the built-in rules.
func Families() []string { return slices.Sorted(maps.Keys(families)) }

// builtIn maps networks to their built-in rule, unless configured otherwise.
var builtIn = map[string]string{
	"BTC": "bitcoin", "XRP": "xrp", "SOL": "solana", "TRX": "tron", "TRC20": "tron",
	"ETH": "evm", "ERC20": "evm", "BSC": "evm", "BEP20": "evm", "POLYGON": "evm", "ARBITRUM": "evm", "OPTIMISM": "evm",
	"BASE": "evm", "AVAXC": "evm",
}

// Rules are the rules by network code. A network without a rule accepts every well-formed address.
type Rules map[string]Rule

// NewRules returns the built-in rules, changed and extended by the configuration. It maps a network code to the name of
// a built-in rule, or to a regular expression that must match the whole address.
func NewRules(configured map[string]string) (Rules, error) {
	rules := Rules{}
	for network, family := range builtIn {
		rules[network] = families[family]
	}
	for network, text := range configured {
		rule, known := families[text]
		if !known {
			pattern, err := regexp.Compile(`^(?:` + text + `)$`)
			if err != nil {
				return nil, fmt.Errorf("address rule of %s: %w", network, err)
			}
			rule = pattern.MatchString
		}
		rules[network] = rule
	}
	return rules, nil
}

// Fits reports whether a well-formed address is valid on the network.
func (r Rules) Fits(network, address string) bool {
	rule, ok := r[network]
	return !ok || rule(address)
}
