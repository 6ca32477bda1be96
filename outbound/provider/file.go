package provider

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"

	"castellan/domain/money/provider"
)

// File reads accounts from a file, for local use: {"main":[{"asset":"BTC", "free":"1.5","locked":"0"}]}, an array of
// balances for each account.
type File string

var _ provider.Source = File("")

const maxFileBytes = 1 << 20

func (f File) Fetch(context.Context) ([]provider.Account, error) {
	file, err := os.Open(string(f))
	if err != nil {
		return nil, err
	}
	defer file.Close()
	body, err := io.ReadAll(io.LimitReader(file, maxFileBytes+1))
	if err != nil {
		return nil, err
	}
	if len(body) > maxFileBytes {
		return nil, errors.New("the file is longer than 1 MiB")
	}
	var all map[string][]told
	if json.Unmarshal(body, &all) != nil {
		return nil, errors.New(`the file is not {"account":[{"asset":…,"free":…,"locked":…}]}`)
	}
	var accounts []provider.Account
	for name, balances := range all {
		if !provider.ValidName(name) {
			return nil, fmt.Errorf("%.40q is not a valid account name", name)
		}
		accounts = append(accounts, account(name, balances))
	}
	return accounts, nil
}
