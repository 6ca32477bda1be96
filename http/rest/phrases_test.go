package rest

import (
	"testing"
)

// A table is refused that would leave a language without a text.
func TestTablesOfPhrases(t *testing.T) {
	for _, table := range []string{
		"", "en\tar\ttr\n", "en\ttr\tar\nis odd\ttuhaf\n", "en\ttr\tar\nis odd\ttuhaf\t\n",
		"en\ttr\tar\nis %s\ttuhaf\tx\n", "en\ttr\tar\nis required\tzorunludur\tx\n",
		"en\ttr\tar\nmust be one of %s\tx %s\tx %s\n",
	} {
		if err := AddPhrases(table); err == nil {
			t.Errorf("%q was taken", table)
		}
	}
	for _, text := range []string{"", "is", `"a b"`, `"a b" is odd`, "must be one of ", "must be from 1", "is required!"} {
		if said, ok := Translated(text, "tr"); ok {
			t.Errorf("%q is said as %q", text, said)
		}
	}
}
