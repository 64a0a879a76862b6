# lamella_add_operators(TARGET target YAML file... )
# Declares the operators of a user's own YAML for a library target.

include_guard(GLOBAL)

function(lamella_add_operators)
  message(FATAL_ERROR "lamella_add_operators: this installation was built without lamella-gen")
endfunction()
