// PyTorch's names of functions and methods for symbolic sizes. Sizes are plain integers here, so
// each is the function for those, wherever the name stands.
#pragma once

#define as_strided_symint as_strided
#define empty_symint empty
#define empty_strided_symint empty_strided
#define expand_symint expand
#define full_symint full
#define narrow_symint narrow
#define new_empty_symint new_empty
#define new_empty_strided_symint new_empty_strided
#define new_full_symint new_full
#define new_ones_symint new_ones
#define new_zeros_symint new_zeros
#define ones_symint ones
#define rand_symint rand
#define randn_symint randn
#define repeat_symint repeat
#define repeat_interleave_symint repeat_interleave
#define reshape_symint reshape
#define select_symint select
#define slice_symint slice
#define split_symint split
#define view_symint view
#define zeros_symint zeros
