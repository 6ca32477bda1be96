package address

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"castellan/domain/kit/storetest"
)

// Each listed address has a valid checksum on a network, so none is a misprint, and is refused in every spelling.
func TestLostAddresses(t *testing.T) {
	for _, a := range append(append([]string{}, noOwner...), tokens...) {
		valid := false
		for _, fits := range families {
			valid = valid || fits(a)
		}
		if !valid {
			t.Errorf("%s is no address of a network", a)
		}
		for _, spelling := range []string{a, " " + a + "\u200b"} {
			if Lost(spelling) == "" {
				t.Errorf("%q is accepted", spelling)
			}
		}
		if strings.HasPrefix(a, "0x") && (Lost(strings.ToLower(a)) == "" || Lost("0x"+strings.ToUpper(a[2:])) == "") {
			t.Errorf("%s is accepted in another case", a)
		}
	}
	if why := Lost("41a614f803b6fd780986a42c78ec9c7f77e6ded13c"); !strings.Contains(why, "token") {
		t.Errorf("a contract of TRON in hexadecimal: %q", why)
	}
	for _, a := range []string{"", "0x5aAeb6053F3E94C9b9A09f33669435E7Ef1BeAed", "TLa2f6VPqDgRE67v1736s7bJ8Ray5wYjU7",
		"bc1qar0srrr7xfkvy5l643lydnw9re59gtzzwf5mdq"} {
		storetest.Equal(t, Lost(a), "", a)
	}
}

// A reader who copies an address of a document does not lose money. A mint is the identifier of a token, and is meant.
func TestDocumentsShowNoLostAddress(t *testing.T) {
	word := regexp.MustCompile(`[0-9A-Za-z]{25,64}`)
	found, mint := 0, "EPjFWdd5AufqSSqeM2qN1xzybapC8G4wEGGkZwyTDt1v" // of mintAddress
	err := filepath.WalkDir("../../../../docs", func(path string, d os.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		text, err := os.ReadFile(path)
		for line := range strings.Lines(string(text)) {
			for _, w := range word.FindAllString(line, -1) {
				if evm(w) || tron(w) || solana(w) {
					found++
				}
				if why := Lost(w); why != "" && w != mint {
					t.Errorf("%s: %s %s", path, w, why)
				}
			}
		}
		return err
	})
	if err != nil || found == 0 {
		t.Errorf("%d addresses, %v", found, err)
	}
}
