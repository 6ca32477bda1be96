package config

import (
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
)

// addressRuleNames are the built-in rules that a network may be given.
var addressRuleNames = []string{"bitcoin", "evm", "solana", "tron", "xrp"}

// addressBook checks the rules of networks: a word that is no built-in rule
// was meant to be one.
func (k *checker) addressBook() {
	for _, network := range slices.Sorted(maps.Keys(k.c.AddressBook.AddressRules)) {
		rule := k.c.AddressBook.AddressRules[network]
		if slices.Contains(addressRuleNames, rule) {
			continue
		}
		_, err := regexp.Compile(rule)
		anchored := len(rule) > 2 && strings.HasPrefix(rule, "^") && strings.HasSuffix(rule, "$")
		k.refuse(err != nil || !anchored, "addressbook.address_rules",
			fmt.Sprintf("%s for %s is neither one of %s nor a regular expression between ^ and $", quote(rule), quote(network),
				strings.Join(addressRuleNames, ", ")))
	}
}

// tagRule is the form of a rule of tags.
var tagRule = regexp.MustCompile(`^(none|number|memo:([1-9][0-9]?|1[01][0-9]|12[0-8]))$`)

// tags checks the rules of the tags of networks.
func (k *checker) tags() {
	for _, network := range slices.Sorted(maps.Keys(k.c.AddressBook.TagRules)) {
		rule := k.c.AddressBook.TagRules[network]
		k.refuse(!tagRule.MatchString(rule), "addressbook.tag_rules",
			quote(rule)+" for "+quote(network)+" is neither none, number nor memo: with 1 to 128 bytes")
	}
}
