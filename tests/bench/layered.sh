#!/bin/sh
# Writes a layered configuration of N terraform_data to standard output: layered.sh N [PER_LAYER]
# Each one refers to the two of the layer below that stand under it; so the graph is deep, wide and connected.
# It is Terraform's language as it stands, so `terraform` takes it too.
exec awk -v n="${1:?how many}" -v width="${2:-100}" 'BEGIN {
    for (i = 0; i < n; i++) {
        layer = int(i / width); column = i % width
        printf "resource \"terraform_data\" \"n%d\" {\n  input = {\n    name  = \"node %d of layer %d\"\n    layer = %d\n", i, column, layer, layer
        if (layer > 0) {
            below = (layer - 1) * width
            printf "    left  = terraform_data.n%d.id\n    right = terraform_data.n%d.id\n", below + column, below + (column + 1) % width
        }
        print "  }\n}\n"
    }
}'
