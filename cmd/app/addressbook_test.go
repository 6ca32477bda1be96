package app

import (
	"strings"
	"testing"

	"castellan/config"
	"castellan/domain/money/addressbook/address"
)

// The configuration has exactly the domain's names of the built-in address rules.
func TestAddressRuleNames(t *testing.T) {
	for _, family := range address.Families() {
		c, err := config.Load("", []string{"CASTELLAN_ADDRESSBOOK_ADDRESS_RULES=NEW=" + family})
		if err != nil {
			t.Fatal(err)
		}
		rules, err := address.NewRules(c.AddressBook.AddressRules)
		if err != nil || rules.Fits("NEW", "neither-of-them") {
			t.Errorf("%s: %v", family, err)
		}
	}
	_, err := config.Load("", []string{"CASTELLAN_ADDRESSBOOK_ADDRESS_RULES=NEW=none"})
	if err == nil || !strings.Contains(err.Error(), "one of "+strings.Join(address.Families(), ", ")+" nor") {
		t.Errorf("got %v", err)
	}
}
