package user

import (
	"strings"

	"castellan/domain/kit/fault"
	"castellan/domain/kit/geo"
	"castellan/domain/kit/numbering"
)

// International reads a number in international form, as other services store it: "+" or "00", dialling code, number.
// It never changes the number, and returns the dialling code and the canonical number.
//
// Errors: INVALID_FIELD naming phoneNumber.
func International(text string) (dial, e164 string, err error) {
	written := NumberText(text)
	all, ok := strings.CutPrefix(written, "+")
	if !ok {
		all, ok = strings.CutPrefix(written, "00")
	}
	dial, number, plan := numbering.Split(all)
	if plan == nil && len(all) > 3 && all[0] != '0' { // a new country: all codes of one and two digits are assigned
		dial, number = all[:3], all[3:]
	}
	if !ok || !digits(dial) || dial == "" || !digits(number) {
		return "", "", fault.Invalid("phoneNumber", "must begin with + and the dialling code")
	}
	if e164, err = e164Of(dial, number); err != nil {
		return "", "", err
	}
	return dial, e164, nil
}

// Internationals returns the canonical numbers that a national number can be, with the dialling code of each country,
// and the forms in which 0.9 stored them.
func Internationals(national string) (numbers []string) {
	for _, dial := range geo.DialCodes() {
		former := "+" + dial + strings.TrimPrefix(national, "0")
		numbers = append(numbers, former)
		if _, _, plan := numbering.Split(dial); plan != nil {
			if read, ok := plan.National(national); ok && "+"+dial+read != former {
				numbers = append(numbers, "+"+dial+read)
			}
		}
	}
	return numbers
}
